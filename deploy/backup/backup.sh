#!/bin/sh
# backup.sh DIRECTORY: takes a backup of a cluster into a new folder of DIRECTORY:
# a snapshot of etcd, and of what else a restored cluster needs. Prints its name.
#
# etcdctl's own variables say where etcd is and who asks, e.g.
#   ETCDCTL_ENDPOINTS=https://127.0.0.1:2379 ETCDCTL_CACERT=… ETCDCTL_CERT=… ETCDCTL_KEY=…
# (an embedded etcd: ETCDCTL_ENDPOINTS=unix:///var/lib/kctl/apiserver/etcd/etcd.sock).
#   KEEP    how many backups stay in DIRECTORY, 7 without
#   STALL   seconds after which a snapshot that no longer grows is given up, 300 without
#   ALSO    files and folders to keep beside the snapshot, e.g. "/etc/kctl":
#           certificates and keys, the encryption configuration, flags
set -eu
case $#:${1:-} in
1:[!-]*) ;; # not --help, which would be a directory
*) echo "usage: backup.sh DIRECTORY; it reads etcdctl's variables, KEEP, STALL and ALSO (docs/operations.md)" >&2; exit 2 ;;
esac
into=$1
keep=${KEEP:-7}
case $keep in '' | *[!0-9]* | 0) echo "backup.sh: KEEP=$keep is no number of backups" >&2; exit 2 ;; esac
stall=${STALL:-300}
case $stall in '' | *[!0-9]* | 0) echo "backup.sh: STALL=$stall is no number of seconds" >&2; exit 2 ;; esac
export ETCDCTL_API=3
PATH=$(dirname "$(readlink -f "$0")"):$PATH # of kctl-etcd, whose etcdctl and etcdutl lie beside this
umask 077 # a snapshot holds every secret of the cluster

mkdir -p "$into"
exec 9>>"$into/.lock" # which empties nothing that a link of the directory's owner leads to
flock -n 9 || { echo "backup.sh: another backup into $into is under way" >&2; exit 1; }
rm -rf "$into"/unfinished-*
unfinished=$into/unfinished-$$
mkdir "$unfinished"
saving=
trap '[ -z "$saving" ] || kill -KILL "$saving" 2>/dev/null || :; rm -rf "$unfinished"' EXIT
trap 'exit 1' HUP INT TERM # a signal alone would not run what is above

# A snapshot waits for an etcd that does not answer, without end, and would keep later backups waiting. A get
# takes its limit from the flag only, and the flag beside the variable is an error.
env -u ETCDCTL_COMMAND_TIMEOUT etcdctl get health --consistency=s --command-timeout="${ETCDCTL_COMMAND_TIMEOUT:-30s}" >"$unfinished/log" 2>&1 || {
	cat "$unfinished/log" >&2
	echo "backup.sh: etcd does not answer at ${ETCDCTL_ENDPOINTS:-127.0.0.1:2379}, or not to this client" >&2
	exit 1
}

# The disk may be etcd's, which ends when it is full.
holds=$(etcdctl endpoint status --write-out=json 2>/dev/null | sed -n 's/.*"dbSize":\([0-9]*\).*/\1/p')
free=$(df --output=avail -B1 "$into" | tail -n 1)
if [ "$free" -lt $((2 * ${holds:-0})) ]; then
	echo "backup.sh: $free bytes are free for $into, and etcd holds $holds: make room for twice as much, or keep fewer backups (KEEP)" >&2
	exit 1
fi

# Nor does it end if etcd answers, and its disk doesn't. Without the lock: where it is the disk of DIRECTORY that
# hangs, nothing ends it, and later backups must not wait for it.
size() { stat -c %s "$unfinished"/snapshot.db* 2>/dev/null || :; }
etcdctl snapshot save "$unfinished/snapshot.db" >"$unfinished/log" 2>&1 9>&- &
saving=$!
had=none
grew=$(date +%s)
while sleep 0.2 && kill -0 "$saving" 2>/dev/null; do
	has=$(size)
	if [ "$has" != "$had" ]; then
		had=$has
		grew=$(date +%s)
	elif [ $(($(date +%s) - grew)) -ge "$stall" ]; then
		cat "$unfinished/log" >&2
		echo "backup.sh: the snapshot has not grown for $stall s, at $has bytes: look at etcd's disk, and at the one of $into" >&2
		exit 1
	fi
done
ended=$saving
saving= # its number may be another's by now
wait "$ended" || { cat "$unfinished/log" >&2; exit 1; }
rm "$unfinished/log"
if command -v etcdutl >/dev/null 2>&1; then
	etcdutl snapshot status "$unfinished/snapshot.db" --write-out=json >"$unfinished/status.json"
else
	etcdctl snapshot status "$unfinished/snapshot.db" --write-out=json >"$unfinished/status.json"
fi
if [ -n "${ALSO:-}" ]; then
	# shellcheck disable=SC2046,SC2086 # a list of paths
	tar -C / -cf "$unfinished/files.tar" $(printf ' %s' $ALSO | sed 's, /, ,g')
fi
(cd "$unfinished" && sha256sum -- * >SHA256SUMS)

# The name of a backup appears when everything of it is on disk, and not before.
sync -f "$unfinished/SHA256SUMS"
name=$into/backup-$(date -u +%Y%m%dT%H%M%S.%NZ)
mv "$unfinished" "$name"
echo "$name"

# The oldest go, now that there is a new one. By its name this one may be older than others, if the clock was
# ahead when they were taken: it stays all the same, and those go first.
set -- "$into"/backup-*
for _ in "$@"; do
	[ "$1" != "$name" ] || break
	set -- "$@" "$1"
	shift
done
shift
while [ $# -ge "$keep" ]; do
	rm -rf "$1"
	shift
done
