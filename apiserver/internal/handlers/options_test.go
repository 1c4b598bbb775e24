package handlers

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/request"
)

// TestAFieldSelectorIsParsedOnce: a watch holds one, however long it is.
func TestAFieldSelectorIsParsedOnce(t *testing.T) {
	parsed := fields.OneTermEqualSelector("metadata.name", "a")
	arrived := &call{ctx: request.With(t.Context(), &request.Arrival{Info: &request.Info{Fields: parsed}})}
	if got, err := arrived.fieldSelector("metadata.name=b"); err != nil || got != parsed {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := (&call{ctx: t.Context()}).fieldSelector("metadata.name=b"); err != nil || got.String() != "metadata.name=b" {
		t.Errorf("outside a request: %v, %v", got, err)
	}
}
