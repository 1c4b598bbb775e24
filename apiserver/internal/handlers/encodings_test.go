package handlers

import (
	"bytes"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func storedObject(name string) registry.Encoded {
	return registry.Encoded{JSON: fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q}}`, name)}
}

// TestEncodingsAreShared: whoever wants the same object in the same form gets what was made for the first.
func TestEncodingsAreShared(t *testing.T) {
	e, stored := NewEncodings(), storedObject("a")
	var made atomic.Int32
	encode := func(f form, kind schema.GroupVersionKind) string {
		text, err := e.of(stored, kind, f, func() ([]byte, error) {
			return fmt.Appendf(nil, "%d", made.Add(1)), nil
		})
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	whole, metadata := form{media: runtime.ContentTypeProtobuf}, form{media: runtime.ContentTypeProtobuf, as: asMetadata, group: "v1"}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := encode(whole, podKind); got != "1" {
				t.Errorf("got what was made as number %s", got)
			}
		})
	}
	wg.Wait()
	for _, c := range []struct {
		f    form
		kind schema.GroupVersionKind
		want string
	}{
		{whole, podKind, "1"}, {metadata, podKind, "2"}, {whole, podKind.GroupKind().WithVersion("v2"), "3"}, {metadata, podKind, "2"},
		{form{media: runtime.ContentTypeProtobuf, pretty: true}, podKind, "1"}, // as for curl
		{form{media: runtime.ContentTypeProtobuf, as: asMetadata, group: "v1beta1", list: true}, podKind, "2"},
	} {
		if got := encode(c.f, c.kind); got != c.want {
			t.Errorf("%v of %v: got what was made as number %s, not %s", c.f, c.kind, got, c.want)
		}
	}
}

// TestEncodingsHoldNoRequests: a form is made of parts of an Accept header, which may have a megabyte.
func TestEncodingsHoldNoRequests(t *testing.T) {
	e, stored := NewEncodings(), storedObject("a")
	ask := func() weak.Pointer[byte] {
		header := []byte(asMetadata + ";v=v1;" + strings.Repeat("x", 1<<20))
		text := unsafe.String(unsafe.SliceData(header), len(header))
		f := form{media: runtime.ContentTypeProtobuf, as: text[:len(asMetadata)], group: text[len(asMetadata+";v="):][:len("v1")]}
		if _, err := e.of(stored, podKind, f, func() ([]byte, error) { return nil, nil }); err != nil {
			t.Error(err)
		}
		return weak.Make(unsafe.SliceData(header))
	}
	header := ask()
	goruntime.GC()
	if header.Value() != nil {
		t.Error("the header is held with what was made for it")
	}
	if len(e.held) != 1 {
		t.Errorf("%d are held", len(e.held))
	}
}

// TestEncodingsAreBounded: those that were used last are kept.
func TestEncodingsAreBounded(t *testing.T) {
	const size, kept = 1000, 10
	e := newEncodings(kept * (size + perEncoding))
	made := map[int]int{}
	objects := make([]registry.Encoded, 3*kept)
	get := func(i int) {
		text, err := e.of(objects[i], podKind, form{}, func() ([]byte, error) {
			made[i]++
			return bytes.Repeat([]byte{byte(i)}, size), nil
		})
		if err != nil || len(text) != size || text[0] != byte(i) {
			t.Fatalf("object %d: %v, %v", i, text, err)
		}
	}
	for i := range objects {
		objects[i] = storedObject(fmt.Sprint(i))
		get(i)
		get(0) // always among the last used
	}
	if e.size > e.most || len(e.held) != kept || e.order.Len() != kept {
		t.Errorf("%d bytes of %d encodings are held", e.size, len(e.held))
	}
	get(len(objects) - 1)
	get(1)
	if made[0] != 1 || made[len(objects)-1] != 1 || made[1] != 2 {
		t.Errorf("made %v", made)
	}
}

// TestEncodingThatFails is tried again by the next one who asks, and takes no room.
func TestEncodingThatFails(t *testing.T) {
	e, stored, broken := NewEncodings(), storedObject("a"), errors.New("broken")
	if _, err := e.of(stored, podKind, form{}, func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_, _ = e.of(stored, podKind, form{}, func() ([]byte, error) { panic("encode") })
	}()
	if len(e.held) != 0 || e.order.Len() != 0 || e.size != 0 {
		t.Errorf("%d are held, of %d bytes", len(e.held), e.size)
	}
	if text, err := e.of(stored, podKind, form{}, func() ([]byte, error) { return []byte("x"), nil }); err != nil || string(text) != "x" {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestEncodingOutlivesItsRoom: one that was dropped while it was made is not counted.
func TestEncodingOutlivesItsRoom(t *testing.T) {
	e := newEncodings(perEncoding + 1)
	text, err := e.of(storedObject("a"), podKind, form{}, func() ([]byte, error) {
		if _, err := e.of(storedObject("b"), podKind, form{}, func() ([]byte, error) { return []byte("much"), nil }); err != nil {
			t.Error(err)
		}
		return []byte("a"), nil
	})
	if err != nil || string(text) != "a" || e.size != 0 || len(e.held) != 0 {
		t.Errorf("got %s, %v; %d bytes are counted, %d are held", text, err, e.size, len(e.held))
	}
}
