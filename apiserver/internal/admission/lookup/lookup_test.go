package lookup

import (
	"context"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// store has an object of any name, as large as it says, and counts how many it decodes.
type store struct {
	size     int
	revision int64
	decoded  int
}

func (s *store) Get(_ context.Context, _, _, _ string) (registry.Encoded, error) {
	return registry.Encoded{JSON: make([]byte, s.size), Revision: s.revision}, nil
}

func (s *store) Decode(e registry.Encoded) (core.Object, error) {
	s.decoded++
	return &core.Namespace{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatInt(e.Revision, 10)}}, nil
}

// An object is decoded once for each of its states. What is kept is bounded by its size,
// whether a few are large or many are small.
func TestWhatIsKept(t *testing.T) {
	for size, most := range map[int]int{1 << 10: 2048, 1 << 20: 2, 3 << 20: 1} {
		s := &store{size: size, revision: 1}
		o := New[*core.Namespace](s)
		get := func(name string) *core.Namespace {
			t.Helper()
			obj, err := o.Get(t.Context(), "", name)
			if err != nil {
				t.Fatal(err)
			}
			return obj
		}
		for range 3 {
			get("a")
		}
		s.revision++
		if get("a").ResourceVersion != "2" || s.decoded != 2 {
			t.Errorf("%d bytes: two states were decoded %d times", size, s.decoded)
		}
		for i := range 3 * most {
			get(strconv.Itoa(i))
			if len(o.decoded) > most {
				t.Fatalf("%d bytes: %d objects are kept, more than %d", size, len(o.decoded), most)
			}
		}
		before := s.decoded
		if get(strconv.Itoa(3*most - 1)); s.decoded != before {
			t.Errorf("%d bytes: the last object is not kept", size)
		}
	}
}
