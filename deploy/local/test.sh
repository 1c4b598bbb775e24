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
# more, by itself, and both outputs stay to be read: what fails twice is broken, and
# what fails once is named as FLAKY at the end, to be looked into.
#
# The kubelet's tests wait for containers, one package after the other. Meanwhile, the
# scheduler's and kubectl's are run beside them, and shown when it is their turn.
set -uo pipefail
cd "$(dirname "$0")/../.."
results=$(mktemp -d)
touch "$results"/{failed,flaky}

# While tests wait for clusters and containers, what comes next is compiled.
for module in "$@"; do
	[ "$module" = test ] || (cd "$module" && nice -n 19 go list -race -export -test -deps ./...) >/dev/null 2>&1
done &
trap 'rm -rf "$results"; kill $(jobs -p) 2>/dev/null' EXIT

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

# of_module MODULE: all its tests, and again the packages that failed.
of_module() (
	echo "== $1"
	# Several servers in one process, twice as large as usual: a third of the time went into garbage.
	# Before each of 260 test programs ends, the race detector waits for a second, unless told otherwise.
	go_test=(env GOGC=300 GORACE=atexit_sleep_ms=50 go test -race -vet=off -timeout 20m)
	[ "$1" != test ] || go_test=(env CGO_ENABLED=0 "GOFLAGS=-trimpath -tags=nomsgpack,grpcnotrace" go test -vet=off -timeout 20m)
	output=$results/$1.first
	cd "$1" || exit 1
	all "$1" && return
	packages=$(awk '$1 == "FAIL" && $2 ~ "^kctl/" && !/\[(build|setup) failed\]/ { print $2 }' "$output" | sort -u)
	if [ -z "$packages" ] || grep -q '^FAIL.*\[\(build\|setup\) failed\]' "$output"; then
		echo "$1" >>"$results/failed" # it does not even compile
	fi
	for package in $packages; do
		echo "== once more: $package"
		if "${go_test[@]}" -count=1 "$package"; then
			echo "$package" >>"$results/flaky"
		else
			echo "$package" >>"$results/failed"
		fi
	done
)

# beside MODULE...: those that can run beside the kubelet's, which have precedence.
beside() {
	renice -n 5 $BASHPID >/dev/null
	for module in "$@"; do
		case $module in scheduler | kubectl) of_module "$module" >"$results/$module.beside" 2>&1 ;; esac
	done
}

for module in "$@"; do
	if [ "$module" = kubelet ]; then
		beside "$@" &
		others=$!
	fi
	if [ -n "${others-}" ] && [[ $module = scheduler || $module = kubectl ]]; then
		wait "$others"
		cat "$results/$module.beside"
	else
		of_module "$module"
	fi
done
[ ! -s "$results/flaky" ] || echo "FLAKY, passed the second time:" $(cat "$results/flaky")
[ ! -s "$results/failed" ] || { echo "failed:" $(cat "$results/failed"); exit 1; }
