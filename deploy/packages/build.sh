#!/bin/sh
# build.sh BIN VERSION OUT: Debian packages of the programs in BIN, by dpkg-deb,
# which is on every Debian machine. nfpm would make the same files with
# some eighty modules more to pin and to watch.
set -eu
bin=$1 version=$2 out=$3
here=$(dirname "$0")
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir -p "$out"
# A release before 1.0 is newer than its -dev: in Debian's order, ~ says so.
debian=$(printf %s "$version" | tr - '~')
# One moment for all files makes packages of one commit the same, bit by bit.
: "${SOURCE_DATE_EPOCH:=$(git -C "$here" log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH

etcd=$("$bin/etcd" --version | sed -n 's/^etcd Version: //p')
fill() { sed "s/@VERSION@/$debian/g; s/@ARCHITECTURE@/$architecture/; s/@ETCD@/$etcd/; s/@SIZE@/${size:-}/" "$1" >"$2"; }

for package in kctl kctl-control-plane kctl-etcd kctl-node; do
	root=$work/$package
	"$here/install.sh" "$bin" "$root" /usr "$package"
	install -D -m 0644 "$here/../../LICENSE" "$root/usr/share/doc/$package/copyright"
	gzip -9nc "$here/../../CHANGELOG.md" >"$root/usr/share/doc/$package/changelog.gz"
	mkdir "$root/DEBIAN"
	(cd "$root" && find etc -type f 2>/dev/null | sort | sed 's|^|/|') >"$root/DEBIAN/conffiles"
	[ -s "$root/DEBIAN/conffiles" ] || rm "$root/DEBIAN/conffiles"
	(cd "$root" && find usr -type f | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
	size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
	fill "$here/$package/control" "$root/DEBIAN/control"
	for script in preinst postinst prerm postrm; do
		[ -e "$here/$package/$script" ] || continue
		fill "$here/$package/$script" "$root/DEBIAN/$script"
		chmod 0755 "$root/DEBIAN/$script"
	done
	find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	# xz takes a minute of two cores for 10 MB less. Tests say "none".
	dpkg-deb --root-owner-group -Z"${COMPRESSION:-gzip}" --build "$root" "$out/${package}_${debian}_$architecture.deb"
done
