package networking

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"kctl/apiserver/internal/field"
)

// TestBlocks: exceptions are ranges within the block's. In a stored policy the block may stay
// as it is, but does not hide what is wrong with a new exception.
func TestBlocks(t *testing.T) {
	const invalid = `except[0]: Invalid value: "y": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`
	for name, test := range map[string]struct {
		cidr, except, stored string
		want                 string
	}{
		"a smaller one":       {"10.0.0.0/8", "10.1.0.0/16", "", "[]"},
		"the same":            {"10.0.0.0/8", "10.0.0.0/8", "", "[except[0]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr`]"},
		"none":                {"10.0.0.0/8", "y", "", "[" + invalid + "]"},
		"of none":             {"x", "y", "", `[cidr: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)]`},
		"of a stored one":     {"x", "y", "x", "[" + invalid + "]"},
		"of an empty one":     {"", "y", "", "[cidr: Required value]"},
		"fine, of a bad one":  {"x", "10.1.0.0/16", "x", "[]"},
		"old form, of stored": {"10.0.0.0/8", "010.1.0.0/16", "010.1.0.0/16", "[]"},
	} {
		stored := []string{"10.0.0.0/8"}
		if test.stored != "" {
			stored = append(stored, test.stored)
		}
		block := &networkingv1.IPBlock{CIDR: test.cidr, Except: []string{test.except}}
		if got := fmt.Sprint(validateBlock(block, stored, (*field.Path)(nil))); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}
