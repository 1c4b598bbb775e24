package registry

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/request"
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

// TestOneOfEachOwner: equal references are one, and who says the same owner in
// two ways is warned only.
func TestOneOfEachOwner(t *testing.T) {
	one := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u", Controller: ptr.To(true)}
	same := one
	same.Controller = ptr.To(true)
	other, stranger := one, one
	other.Name, stranger.UID = "q", "v"
	for _, test := range []struct {
		owners []metav1.OwnerReference
		left   int
		warned string
	}{
		{[]metav1.OwnerReference{one}, 1, ""},
		{[]metav1.OwnerReference{one, stranger}, 2, ""},
		{[]metav1.OwnerReference{one, same, stranger}, 2, "observed: u"},
		{[]metav1.OwnerReference{one, same, other, stranger, stranger}, 3, "observed: u, v"},
	} {
		warnings := &request.Warnings{}
		obj := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}
		oneOfEachOwner(request.WithWarnings(t.Context(), warnings), obj)
		said := strings.Join(warnings.All(), "; ")
		if len(obj.OwnerReferences) != test.left || !strings.HasSuffix(said, test.warned) || (said == "") != (test.warned == "") {
			t.Errorf("%v left, warned %q", obj.OwnerReferences, said)
		}
	}
}
