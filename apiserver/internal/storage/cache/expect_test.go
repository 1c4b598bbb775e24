package cache

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"kctl/proto/core"
)

func TestOnlyTheExpectedValueIsRecognised(t *testing.T) {
	c := New(Options{Prefix: "/r/"})
	labels := map[string]string{"a": "b"}
	object := &core.Pod{}
	entry := func(value string) *Entry { return &Entry{Key: "/r/x", Value: []byte(value)} }
	const written, stored = `{"metadata":{"name":"x"}}`, `{"metadata":{"resourceVersion":"7","name":"x"}}`

	c.Expect("/r/x", []byte(written), Hint{Labels: labels, Fields: fields.Set{"f": "1"}, Object: object})
	labels["a"] = "changed by its owner"
	e := entry(stored)
	if c.expected.recognise(e) != object || e.index.Load() == nil || e.index.Load().labels.Get("a") != "b" || e.index.Load().fields.Get("f") != "1" {
		t.Errorf("expected value: %+v", e.index.Load())
	}
	e = entry(stored)
	if c.expected.recognise(e) != nil || e.index.Load() != nil {
		t.Error("one hint served twice")
	}
	c.Expect("/r/x", []byte(written), Hint{Labels: labels, Object: object})
	e = entry(`{"metadata":{"resourceVersion":"7","name":"y"}}`)
	if c.expected.recognise(e) != nil || e.index.Load() != nil {
		t.Error("another value was recognised")
	}
	c.Expect("/r/x", []byte(written), Hint{Labels: labels, Object: object})
	c.Unexpect("/r/x")
	e = entry(stored)
	if c.expected.recognise(e) != nil || e.index.Load() != nil {
		t.Error("a hint that was taken back was used")
	}
}
