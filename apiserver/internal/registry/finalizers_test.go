package registry

import (
	"testing"

	"kctl/proto/core"
)

func TestFinalizerNames(t *testing.T) {
	for name, good := range map[string]bool{"a.b/c": true, "orphan": true, "foregroundDeletion": true, "kubernetes": true, "ABC": false, "": false} {
		errs := finalizerNames(core.ConfigMaps, []string{"x/y", name})
		if (len(errs) == 0) != good || !good && errs[0].Field != "metadata.finalizers[1]" {
			t.Errorf("%q: %v", name, errs)
		}
	}
	for _, free := range []core.Resource{core.Leases, core.Events, core.PodDisruptionBudgets, {Group: "example.org"}} {
		if errs := finalizerNames(free, []string{"ABC"}); len(errs) > 0 {
			t.Errorf("%s: %v", free.Name, errs)
		}
	}
}
