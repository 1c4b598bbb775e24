#!/bin/sh
# install.sh BIN DESTDIR PREFIX PART...: puts the parts (kctl, kctl-control-plane,
# kctl-etcd, kctl-node) where systemd and people look for them, below DESTDIR. `make install`
# and `make packages` are this.
set -eu
bin=$1 root=$2 prefix=$3
shift 3
source=$(dirname "$0")/../systemd
lib=$prefix/lib/kctl

program() { install -D -m 0755 "$bin/$1" "$root$2/$1"; }
file() { install -D -m 0644 "$source/$1" "$root$2"; }

# Units name the programs by their full paths.
unit() {
	for unit in "$1.service" "$1.timer"; do
		[ -e "$source/$unit" ] || continue
		file "$unit" "$prefix/lib/systemd/system/$unit"
		sed -i "s|/usr/lib/kctl|$lib|g; s|/usr/bin/kctl|$prefix/bin/kctl|g; s|/usr/share/doc|$prefix/share/doc|" "$root$prefix/lib/systemd/system/$unit"
	done
	# What an administrator wrote is not overwritten by make install.
	[ -e "$root/etc/default/$1" ] || file "default/$1" "/etc/default/$1"
}

for part in "$@"; do
	case $part in
	kctl)
		program kctl "$prefix/bin"
		for page in install operations; do
			install -D -m 0644 "$source/../../docs/$page.md" "$root$prefix/share/doc/kctl/$page.md"
		done
		;;
	kctl-control-plane)
		program apiserver "$lib"
		program scheduler "$lib"
		install -m 0755 "$source/../backup/backup.sh" "$source/../backup/restore.sh" "$source/renewed.sh" "$root$lib"
		unit kctl-etcd
		unit kctl-apiserver
		unit kctl-scheduler
		unit kctl-renew
		unit kctl-backup
		file kctl-control-plane.sysusers "$prefix/lib/sysusers.d/kctl-control-plane.conf"
		file kctl-control-plane.tmpfiles "$prefix/lib/tmpfiles.d/kctl-control-plane.conf"
		;;
	kctl-etcd)
		for name in etcd etcdctl etcdutl; do program $name "$lib"; done
		;;
	kctl-node)
		program kubelet "$lib"
		program balancer "$lib"
		unit kctl-kubelet
		unit kctl-balancer
		file containerd.service.d/kctl.conf "$prefix/lib/systemd/system/containerd.service.d/kctl.conf"
		;;
	*)
		echo "install.sh: no such part: $part" >&2
		exit 2
		;;
	esac
done
