package resources_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
)

// TestFind: NotFound is of objects; a resource that no store has is another fault.
func TestFind(t *testing.T) {
	b := start(t)
	if ns, err := b.Find(t.Context(), core.Namespaces, "", "none"); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace that is not there: %v, %v", ns, err)
	}
	unknown := core.Resource{Group: "example.org", Version: "v1", Name: "widgets", Kind: "Widget"}
	if obj, err := b.Find(t.Context(), unknown, "", "w"); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("a resource that is not built in: %v, %v", obj, err)
	}
}
