package change

import (
	"slices"
	"strings"
	"testing"

	"kctl/kubectl/internal/discover"
)

// Objects are pruned in the same order each time, for those who read the
// output, or stop at an error.
func TestSetsArePrunedInOrder(t *testing.T) {
	m, want := newMembers(), []string{"ConfigMap", "Deployment.apps", "Ingress.networking.k8s.io", "Job.batch", "Pod", "Role.rbac.authorization.k8s.io", "Secret",
		"Service"}
	for _, name := range want {
		var r discover.Resource
		r.Kind, r.Group, _ = strings.Cut(name, ".")
		m.kinds[r.GVK().GroupKind()] = r
	}
	for range 5 {
		var got []string
		for _, r := range m.resources() {
			got = append(got, r.GVK().GroupKind().String())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
