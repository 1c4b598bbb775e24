#!/bin/sh
# prometheus.sh OUT: builds Prometheus with the one way to find targets that is
# tested here, by a Kubernetes API: the others are SDKs of clouds, and Debian's
# build has none of them.
set -eu
version=v0.307.3 # of the module: 3.7.3
out=$1
source=$(dirname "$out")/prometheus.source

export GOWORK=off CGO_ENABLED=0
module=$(go mod download -json "github.com/prometheus/prometheus@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
rm -rf "$source"
trap 'rm -rf "$source"' EXIT
cp -r "$module" "$source"
chmod -R u+w "$source"
cat >"$source/plugins/plugins.go" <<'end'
package plugins

import _ "github.com/prometheus/prometheus/discovery/kubernetes"
end
cd "$source"
go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$out" ./cmd/prometheus
