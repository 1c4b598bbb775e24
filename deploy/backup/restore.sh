#!/bin/sh
# restore.sh BACKUP DATA_DIR [etcd flags]: makes the data directory of an etcd
# member out of a backup. API servers and etcd must be stopped. A cluster of three
# is restored by running this on each machine with the same backup and the same AT:
#
#   AT=1785500000000000 restore.sh BACKUP /var/lib/etcd --name=etcd-1 --initial-advertise-peer-urls=https://10.0.0.1:2380 \
#     --initial-cluster=etcd-1=https://10.0.0.1:2380,etcd-2=…,etcd-3=… --initial-cluster-token=NEW
#
# Without flags it is for a single member; `--embedded` is for the API server's own etcd.
#   AT  the time of the restore, in microseconds since 1970, by `date +%s%6N`; now without. Members that don't
#       begin with the same revision are no cluster, so with several it has to be said
#
# The revision becomes AT, and what was before counts as compacted: clients that watch are told that they are
# behind (410 Gone) and list anew. A time is ahead of whatever has been, in this history and in those that earlier
# restores have begun, for as long as there are less than a million writes in a second.
set -eu
[ $# -ge 2 ] || { echo "usage: restore.sh BACKUP DATA_DIR [--embedded | flags of etcdutl snapshot restore]" >&2; exit 2; }
backup=$1 data=$2
shift 2
export ETCDCTL_API=3
PATH=$(dirname "$(readlink -f "$0")"):$PATH # of kctl-etcd, whose etcdutl lies beside this
next="give it to etcd's user before etcd is started"
if [ "${1:-}" = --embedded ]; then
	shift
	next='the API server can be started (if it has a user of its own, give it to that first)'
	set -- --name=kctl --initial-cluster=kctl=http://localhost:2380 --initial-advertise-peer-urls=http://localhost:2380 "$@"
fi

[ -f "$backup/SHA256SUMS" ] || { echo "restore.sh: $backup is no backup: it has no SHA256SUMS" >&2; exit 1; }
(cd "$backup" && sha256sum --check --strict --quiet SHA256SUMS) || { echo "restore.sh: $backup is damaged; take another" >&2; exit 1; }
at=${AT:-}
if [ -z "$at" ]; then
	case "$*" in
	*--initial-cluster[=\ ]*=*,*=*) echo "restore.sh: set AT to the same for each member: \`date +%s%6N\` of one machine" >&2; exit 2 ;;
	esac
	at=$(date +%s%6N)
fi
case $at in
*[!0-9]* | 0*) at= ;;
esac
[ ${#at} = 16 ] || { echo "restore.sh: AT=${AT:-$(date +%s%6N)} is no time of these centuries, in microseconds since 1970" >&2; exit 2; }
umask 077
created=
[ -d "$data" ] || created=yes
mkdir -p "$data"
exec 9<"$data"
flock -n 9 || { echo "restore.sh: another restore into $data is under way" >&2; exit 1; }
there=$(ls -A --ignore=.restore "$data")
[ -z "$there" ] || { echo "restore.sh: $data is not empty; move it away first, and keep it until the cluster is well" >&2; exit 1; }

# In the directory, which may be a mount, so that a move is all that is left to do. What a killed restore has left
# goes; nothing below is taken as it is, for it may be a link that etcd's user has made.
making=$data/.restore
trap 'rm -rf "$making"; [ -z "$created" ] || rmdir "$data" 2>/dev/null || true' EXIT
trap 'exit 1' HUP INT TERM # a signal alone would not run what is above
rm -rf "$making"
mkdir "$making"
made=$making/etcd
if command -v etcdutl >/dev/null 2>&1; then
	had=$(etcdutl snapshot status "$backup/snapshot.db" --write-out=json | sed -n 's/.*"revision":\([0-9]*\).*/\1/p')
	[ -n "$had" ] || { echo "restore.sh: etcdutl does not tell the revision of $backup/snapshot.db" >&2; exit 1; }
	bump=$((at - had))
	if [ "$bump" -le 0 ]; then # never backwards
		echo "restore.sh: the backup is of a time when a clock was ahead of AT=$at: restart every client of the API, schedulers and kubelets among them" >&2
		bump=1000000000
	fi
	etcdutl snapshot restore "$backup/snapshot.db" --data-dir="$made" --bump-revision="$bump" --mark-compacted "$@"
else
	echo "restore.sh: there is no etcdutl (etcd 3.5 and newer), and etcdctl can't raise the revision: restart every client of the API, schedulers and kubelets among them" >&2
	etcdctl snapshot restore "$backup/snapshot.db" --data-dir="$made" "$@"
fi
mv "$made/member" "$data"/
echo "restored into $data; $next"
