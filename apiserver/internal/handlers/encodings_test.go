package handlers

import (
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
	if n, _ := e.texts.Held(); n != 1 {
		t.Errorf("%d are held", n)
	}
}

// TestEncodingThatPanics is tried again by the next one who asks, and takes no room.
func TestEncodingThatPanics(t *testing.T) {
	e, stored := NewEncodings(), storedObject("a")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_, _ = e.of(stored, podKind, form{}, func() ([]byte, error) { panic("encode") })
	}()
	if n, size := e.texts.Held(); n != 0 || size != 0 {
		t.Errorf("%d are held, of %d bytes", n, size)
	}
	if text, err := e.of(stored, podKind, form{}, func() ([]byte, error) { return []byte("x"), nil }); err != nil || string(text) != "x" {
		t.Errorf("got %s, %v", text, err)
	}
}
