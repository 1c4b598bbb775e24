package registry

import (
	"fmt"
	"testing"

	"kctl/proto/core"
)

func TestFinalizerNames(t *testing.T) {
	for name, good := range map[string]bool{"a.b/c": true, "orphan": true, "foregroundDeletion": true, "kubernetes": true, "ABC": false, "": false} {
		errs := validateFinalizerNames(core.ConfigMaps, []string{"x/y", name})
		if (len(errs) == 0) != good || !good && errs[0].Field != "metadata.finalizers[1]" {
			t.Errorf("%q: %v", name, errs)
		}
	}
	for _, free := range []core.Resource{core.Leases, core.Events, core.PodDisruptionBudgets, {Group: "example.org"}} {
		if errs := validateFinalizerNames(free, []string{"ABC"}); len(errs) > 0 {
			t.Errorf("%s: %v", free.Name, errs)
		}
	}
}

// TestLongFinalizers: what it takes to compare finalizers with the old ones does not
// grow with the square of their number. It would otherwise take longer than a test may.
func TestLongFinalizers(t *testing.T) {
	const many = 600_000
	var now, before []string
	for i := range many {
		now, before = append(now, fmt.Sprintf("%07d", i)), append(before, fmt.Sprintf("a/%05d", i))
	}
	if n := len(FinalizerWarnings(now, append(before, now[0]))); n != many-1 {
		t.Errorf("%d warnings", n)
	}
}
