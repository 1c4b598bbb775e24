#!/bin/sh
# Installs what is missing on a Debian machine: `deps.sh run` for a cluster (`deps.sh build`
# only looks for Go), `deps.sh test` for the tests, `deps.sh long` for the long ones, `deps.sh runtime`
# to build a newer containerd and runc for those. What is there, from wherever, is left alone.
set -eu

packages=
unpacked=$(dirname "$0")/../../build/kubernetes-client
unpack=
want() { # want PACKAGE COMMAND...: the package, if one of the commands is missing
	package=$1
	shift
	for command in "$@"; do
		command -v "$command" >/dev/null 2>&1 || { packages="$packages $package"; return; }
	done
}

for set in "$@"; do
	case $set in
	build)
		# From 1.21 on, Go fetches the version that go.work names; older ones can't read it.
		case $(go env GOVERSION 2>/dev/null) in
		'' | go1.[0-9] | go1.[0-9].* | go1.1[0-9]* | go1.20*)
			echo "Go 1.26 is needed, or one from 1.21 on, which fetches that by itself: https://go.dev/doc/install (Debian 12's own, 1.19, is too old)" >&2
			exit 1
			;;
		esac
		;;
	run)
		want containerd containerd containerd-shim-runc-v2
		want runc runc
		want iptables iptables
		want iproute2 ip
		[ -e /usr/lib/cni/bridge ] || [ -e /opt/cni/bin/bridge ] || [ -e /usr/libexec/cni/bridge ] ||
			packages="$packages containernetworking-plugins"
		;;
	test)
		want gcc gcc # the race detector is linked by it
		[ -e /usr/include/stdlib.h ] || packages="$packages libc6-dev"
		want busybox-static busybox
		want curl curl
		# The oldest kubectl that is asked, beside whichever the machine has.
		[ -x "$unpacked/usr/bin/kubectl" ] || unpack=kubernetes-client
		want etcd-server etcd
		want systemd systemd-analyze
		want dbus-daemon dbus-daemon # a bus for the kubelet's tests of shutdowns
		want btrfs-progs mkfs.btrfs # a file system with subvolumes
		;;
	runtime) # what make runtime builds runc with
		want gcc gcc
		[ -e /usr/include/stdlib.h ] || packages="$packages libc6-dev"
		[ -e /usr/include/seccomp.h ] || packages="$packages libseccomp-dev"
		want pkg-config pkg-config
		;;
	long) # what make test-long needs besides
		want debootstrap debootstrap
		want qemu-system-x86 qemu-system-x86_64
		want docker.io dockerd
		want docker-compose docker-compose
		want prometheus promtool
		;;
	*)
		echo "deps.sh: no such set: $set" >&2
		exit 2
		;;
	esac
done

if [ -n "$unpack" ] && command -v apt-get >/dev/null 2>&1; then
	mkdir -p "$unpacked"
	(
		cd "$unpacked"
		apt-get download -qq "$unpack" 2>/dev/null || { apt-get update -qq && apt-get download -qq "$unpack"; }
		dpkg-deb -x "$unpack"_*.deb .
		rm "$unpack"_*.deb
	)
fi
[ -n "$packages" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "missing on this machine:$packages (Debian's names); install them, or run this as root on Debian" >&2
	exit 1
fi
echo "installing:$packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $packages >/dev/null
