#!/bin/sh
# run.sh BIN DIR PORT: brings a cluster up and shows one pod's way through it.
set -eu
bin=$1 dir=$2 port=$3
kctl=$bin/kctl

# Not in a pipe, which would end as its last command does.
up=$($kctl up --dir "$dir" --port "$port")
printf '%s\n' "$up" | sed '/^export /d'
KUBECONFIG=$dir/admin.kubeconfig
export KUBECONFIG

# word VALUE: as a shell takes it for one word.
word() {
	case $1 in
	*[!A-Za-z0-9_./:@%+=,-]*) printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
	*) printf %s "$1" ;;
	esac
}

show() {
	printf '\n$ kctl %s\n' "$*"
	"$kctl" "$@"
}

if ! $kctl get pod hello >/dev/null 2>&1; then
	show run hello --image=kctl.local/demo --port=8080
fi
show wait pod/hello --for=condition=Ready --timeout=60s
show get pod hello -o wide
show logs hello
show trace pod/hello

down='make down'
[ "$dir" = /var/lib/kctl ] || down="make down DIR=$(word "$dir")"
printf '\nThe cluster stays up; `%s` takes it away. To use it, with kctl or kubectl:\n' "$down"
printf 'export KUBECONFIG=%s PATH=%s:$PATH\n' "$(word "$KUBECONFIG")" "$(word "$(cd "$bin" && pwd)")"
