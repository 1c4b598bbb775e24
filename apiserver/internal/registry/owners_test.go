package registry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/request"
)

func TestDropDuplicateOwners(t *testing.T) {
	owner := func(name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID(uid)}
	}
	for name, c := range map[string]struct {
		owners  []metav1.OwnerReference
		left    int
		warning string
	}{
		"one":      {[]metav1.OwnerReference{owner("a", "1")}, 1, ""},
		"two":      {[]metav1.OwnerReference{owner("a", "1"), owner("b", "2")}, 2, ""},
		"same uid": {[]metav1.OwnerReference{owner("a", "1"), owner("b", "1")}, 2, ""},
		"twice":    {[]metav1.OwnerReference{owner("a", "1"), owner("a", "1")}, 1, "duplicate UID(s) observed: 1"},
		"two, each thrice": {[]metav1.OwnerReference{owner("b", "2"), owner("a", "1"), owner("b", "2"), owner("a", "1"), owner("a", "1"), owner("b", "2")}, 2,
			"duplicate UID(s) observed: 1, 2"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: c.owners}}
			warnings := new(request.Warnings)
			DropDuplicateOwners(request.With(t.Context(), &request.Arrival{Warnings: warnings}), obj, afterMutation)
			if len(obj.OwnerReferences) != c.left {
				t.Errorf("owners are %v", obj.OwnerReferences)
			}
			want := ""
			if c.warning != "" {
				want = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may " +
					"reject such requests as early as 1.24; please fix your requests; " + c.warning
			}
			got := ""
			if all := warnings.All(); len(all) > 0 {
				got = all[0]
			}
			if got != want {
				t.Errorf("warning %q, want %q", got, want)
			}
		})
	}
}
