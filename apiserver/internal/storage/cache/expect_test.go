package cache

import (
	"fmt"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

func TestOnlyTheExpectedValueIsRecognised(t *testing.T) {
	c := New(Options{Prefix: "/r/"})
	labels := map[string]string{"a": "b"}
	object := &core.Pod{}
	stored := func(value string) storage.Object { return storage.Object{Key: "/r/x", Value: []byte(value)} }
	const written, other = `{"metadata":{"name":"x"}}`, `{"metadata":{"name":"y"}}`

	c.Expect("/r/x", []byte(written), Hint{Labels: labels, Fields: fields.Set{"f": "1"}, Object: object})
	labels["a"] = "changed by its owner"
	if hint, ok := c.expected.match(stored(written)); !ok || hint.object != object || hint.index.labels.Get("a") != "b" || hint.index.fields.Get("f") != "1" {
		t.Errorf("expected value: %v, %+v", ok, hint)
	}
	if hint, ok := c.expected.match(stored(written)); ok || hint.object != nil || hint.index != nil {
		t.Error("one hint served twice")
	}
	c.Expect("/r/x", []byte(written), Hint{Labels: labels, Object: object})
	if hint, ok := c.expected.match(stored(other)); ok || hint.object != nil || hint.index != nil {
		t.Error("another value was recognised")
	}
	c.Expect("/r/x", []byte(written), Hint{Labels: labels, Object: object})
	c.Unexpect("/r/x")
	if hint, ok := c.expected.match(stored(written)); ok || hint.object != nil || hint.index != nil {
		t.Error("a hint that was taken back was used")
	}
}

// Hinted changes may come in a list; the hints must not be kept for ever,
// because there is room for only so many.
func TestAListEndsHints(t *testing.T) {
	c := New(Options{Prefix: "/r/", Logger: zap.NewNop()})
	for i := range maxExpected {
		c.Expect(fmt.Sprint("/r/", i), []byte("{}"), Hint{})
	}
	c.replace(nil, 7)
	c.Expect("/r/x", []byte("{}"), Hint{})
	if _, ok := c.expected.match(storage.Object{Key: "/r/x", Value: []byte("{}")}); !ok {
		t.Error("after a list there is no room for new hints")
	}
}
