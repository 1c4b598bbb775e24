package cgroup

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fscommon"
)

// countOf reads a number that not every kernel has.
func countOf(dir, file string) uint64 {
	n, _ := fscommon.GetCgroupParamUint(dir, file)
	return n
}

// boundOf is the same for a bound; 0 for none.
func boundOf(dir, file string) uint64 {
	if n := countOf(dir, file); n < unlimited {
		return n
	}
	return 0
}

// textOf reads a file of one line that not every kernel has.
func textOf(dir, file string) string {
	text, _ := cgroups.ReadFile(dir, file)
	return strings.TrimSpace(text)
}

// number is 0 for words, such as "max", and for negative numbers, which mean the same.
func number(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}

// sharesOf converts a weight of cgroup v2 as cAdvisor does, which spreads them evenly over the
// shares of v1; 0 for none.
func sharesOf(weight uint64) uint64 {
	if weight == 0 {
		return 0
	}
	return minShares + (weight-1)*(maxShares-minShares)/9999
}

// keyed reads a file of lines with a name and a number each.
func keyed(dir, file string) (map[string]uint64, error) {
	text, err := cgroups.ReadFile(dir, file)
	if err != nil {
		return nil, fmt.Errorf("asking what a control group uses: %w", err)
	}
	values := map[string]uint64{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			values[key] = n
		}
	}
	return values, nil
}
