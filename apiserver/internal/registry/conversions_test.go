package registry

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestConversionsAreFew: long lists wait for a place, short ones do not, and a
// request that ends stops waiting.
func TestConversionsAreFew(t *testing.T) {
	c := make(Conversions, 2)
	long := []Encoded{{JSON: make([]byte, longList/2)}, {JSON: make([]byte, longList/2)}}
	first, err := c.Enter(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enter(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Enter(ended, long); !apierrors.IsTimeout(err) {
		t.Errorf("a third long list: %v", err)
	}
	leave, err := c.Enter(ended, long[:1])
	if err != nil {
		t.Errorf("a short list waited: %v", err)
	}
	leave() // gives back what it did not take, if it is wrong
	if len(c) != 2 {
		t.Errorf("%d places are taken", len(c))
	}
	first()
	if _, err := c.Enter(t.Context(), long); err != nil || len(c) != 2 {
		t.Errorf("after one has left: %v, %d taken", err, len(c))
	}
}

// shownWithBound is what a view shows, with its bound.
type shownWithBound struct {
	Resource
	bound Conversions
}

func (s shownWithBound) boundConversions() Conversions                 { return s.bound }
func (s shownWithBound) Measure(string, int, int) (objects, bytes int) { return 0, 0 }

// TestViewsAreConversions: a long list is not shown as another kind while too many are.
func TestViewsAreConversions(t *testing.T) {
	full := make(Conversions, 1)
	full <- struct{}{}
	v := &View{Stored: shownWithBound{bound: full}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.list(ended, List{Items: []Encoded{{JSON: make([]byte, longList)}}}); !apierrors.IsTimeout(err) {
		t.Errorf("a long list: %v", err)
	}
}
