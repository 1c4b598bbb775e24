package handlers

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/registry"
)

// TestConversionsAreFew: long lists wait for a place, short ones do not, and a
// request that ends stops waiting.
func TestConversionsAreFew(t *testing.T) {
	c := make(conversions, 2)
	long := []registry.Encoded{{JSON: make([]byte, longList/2)}, {JSON: make([]byte, longList/2)}}
	first, err := c.enter(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.enter(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.enter(ended, long); !apierrors.IsTimeout(err) {
		t.Errorf("a third long list: %v", err)
	}
	leave, err := c.enter(ended, long[:1])
	if err != nil {
		t.Errorf("a short list waited: %v", err)
	}
	leave() // gives back what it did not take, if it is wrong
	if len(c) != 2 {
		t.Errorf("%d places are taken", len(c))
	}
	first()
	if _, err := c.enter(t.Context(), long); err != nil || len(c) != 2 {
		t.Errorf("after one has left: %v, %d taken", err, len(c))
	}
}
