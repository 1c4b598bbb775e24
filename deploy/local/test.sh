#!/bin/bash
# test.sh MODULE...: the tests of every module, under the race detector. The
# whole-system tests (module test) drive the programs as users get them (KCTL_BIN,
# built before) from outside, where that detector sees nothing: they are compiled
# as check.sh has already compiled them, and go's memory of results, which knows
# nothing of those programs, is not asked. Where tests start container runtimes or
# clusters, one package runs at a time, or two. What go vet says is for check.sh.
#
# Machines that tests share are now and then too slow for a moment, and real
# runtimes have faults of their own. A package that fails is therefore run once
# more, alone, and both outputs stay to be read: what fails twice is broken, and
# what fails once is named as FLAKY at the end, to be looked into.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed='' flaky=''
output=$(mktemp)

# While tests wait for clusters and containers, what comes next is compiled.
for module in "$@"; do
	[ "$module" = test ] || (cd "$module" && nice -n 19 go list -race -export -test -deps ./...) >/dev/null 2>&1
done &
trap 'rm -f "$output"; kill $! 2>/dev/null' EXIT

# with_imports CONDITION: the packages whose tests' imports meet it. Those that
# import critest start a container runtime.
with_imports() {
	go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk -v runtime=/critest "$1"' { print $1 }'
}

run() {
	"${go_test[@]}" "$@" 2>&1 | tee -a "$output"
}

all() {
	case $1 in
	kubelet)
		run $(with_imports '$0 !~ runtime')
		local rc=$?
		run -p 1 $(with_imports '$0 ~ runtime') && return $rc
		;;
	test)
		# These two keep the machine busy all by themselves. The others wait as much as they
		# work, and the longest of them, which compares kubectl and kctl, works beside them.
		run -p 1 -count=1 ./conformance/... ./faults
		local rc=$?
		run -p 2 -count=1 ./witness $(go list ./... | grep -vE '/(conformance(/.*)?|faults|witness)$') && return $rc
		;;
	*) run ./... ;;
	esac
}

for module in "$@"; do
	echo "== $module"
	# Several servers in one process, twice as large as usual: a third of the time went into garbage.
	go_test=(env GOGC=300 go test -race -vet=off -timeout 20m)
	[ "$module" != test ] || go_test=(env CGO_ENABLED=0 "GOFLAGS=-trimpath -tags=nomsgpack,grpcnotrace" go test -vet=off -timeout 20m)
	: >"$output"
	pushd "$module" >/dev/null || exit 1
	if ! all "$module"; then
		packages=$(awk '$1 == "FAIL" && $2 ~ "^kctl/" && !/\[(build|setup) failed\]/ { print $2 }' "$output" | sort -u)
		if [ -z "$packages" ] || grep -q '^FAIL.*\[\(build\|setup\) failed\]' "$output"; then
			failed+=" $module" # it does not even compile
		fi
		for package in $packages; do
			echo "== once more: $package"
			if "${go_test[@]}" -count=1 "$package"; then
				flaky+=" $package"
			else
				failed+=" $package"
			fi
		done
	fi
	popd >/dev/null || exit 1
done
[ -z "$flaky" ] || echo "FLAKY, passed the second time:$flaky"
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
