package check

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/apiserver/internal/field"
)

// TestHugePages: amounts are multiples of the size in the resource's name.
func TestHugePages(t *testing.T) {
	for _, c := range []struct {
		name, amount string
		whole        bool
	}{
		{"2Mi", "2Mi", true}, {"2Mi", "4Mi", true}, {"2Mi", "0", true}, {"1Gi", "1Ti", true},
		{"2Mi", "3Mi", false}, {"2Mi", "1", false}, {"foo", "2Mi", false}, {"", "2Mi", false}, {"0", "2Mi", false}, {"-2Mi", "2Mi", false},
		{"1m", "1", false}, {"1n", "1", false}, {"10E", "10E", false},
	} {
		list := corev1.ResourceList{corev1.ResourceName("hugepages-" + c.name): resource.MustParse(c.amount), "memory": resource.MustParse("1")}
		isName := func(corev1.ResourceName, *field.Path) field.ErrorList { return nil }
		for what, r := range map[string]*corev1.ResourceRequirements{"limits": {Limits: list}, "limits and requests": {Limits: list, Requests: list}} {
			want := len(r.Requests)/2 + 1
			if c.whole {
				want = 0
			}
			if errs := Requirements(r, isName, field.NewPath("resources")); len(errs) != want {
				t.Errorf("%s of hugepages-%s: %s: %v", what, c.name, c.amount, errs)
			}
		}
	}
}
