#!/bin/sh
# check.sh MODULE...: what must hold of the source without running it. Every
# module is looked at by itself (GOWORK=off), as if it were its own repository.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
failed=0
# As make build compiles, so that nothing is compiled twice.
export CGO_ENABLED=0 GOFLAGS="-trimpath -tags=nomsgpack,grpcnotrace"
# The linters spend a quarter of their time on collecting garbage. (The compiler sees to that itself.)
lint() { GOWORK=off GOGC=400 "$@"; }
fail() {
	echo "check: $*" >&2
	failed=1
}

unformatted=$(gofmt -l "$@")
[ -z "$unformatted" ] || fail "gofmt would change: $unformatted"

# The linter is pinned, with its own dependencies, by test/go.mod.
(cd test && GOWORK=off go build -o "$root/build/staticcheck" honnef.co/go/tools/cmd/staticcheck)

for module in "$@"; do
	echo "== $module"
	cd "$root/$module"
	GOWORK=off go build ./... || fail "$module does not build by itself"
	GOWORK=off go vet ./... || fail "go vet $module"
	# One way to write a thing: today's. What is switched off here would make code longer.
	lint go fix -diff -stringsbuilder=false -stditerators=false -inline=false -omitzero=false ./... >"$root/build/fix.diff" ||
		fail "go fix would change $module: $(cat "$root/build/fix.diff")"
	GOWORK=off go mod tidy -diff >/dev/null || fail "$module/go.mod is not tidy: run go mod tidy"
	lint "$root/build/staticcheck" ./... || fail "staticcheck $module"
	# Programs meet over HTTP only: they import proto, never each other.
	others=$(GOWORK=off go list -deps ./... | grep '^kctl/' | grep -v -e "^kctl/$module" -e '^kctl/proto' || true)
	[ -z "$others" ] || fail "$module imports $others"
	if [ "$module" = proto ] || [ "$module" = apiserver ] || [ "$module" = scheduler ] || [ "$module" = kubelet ]; then
		! GOWORK=off go list -deps ./... | grep -q '^k8s.io/client-go' || fail "$module imports client-go"
	fi
done

cd "$root"
# A histogram made without proto/daemon has no native one for Prometheus.
! git grep -n 'prometheus\.NewHistogram' -- '*.go' ':!*_test.go' ':!proto/daemon/histogram.go' || fail "make histograms with proto/daemon"
long=$(LC_ALL=C.UTF-8 git grep -nE '^.{141}' -- '*.go' ':!*_test.go' | cut -d: -f1,2)
[ -z "$long" ] || fail "lines of more than 140 characters: $long"
for folder in $(git ls-files '*.go' | grep -v _test.go | xargs -n1 dirname | sort -u); do
	grep -lq '^// \(Package\|Command\) ' "$folder"/*.go || fail "$folder has no package comment"
	case $folder in test/* | */cmd/*) continue ;; esac
	[ -f "$folder/doc.go" ] || [ "$(ls "$folder"/*.go | grep -vc _test.go)" -eq 1 ] ||
		fail "$folder has several files and no doc.go to say what it is"
done
exit $failed
