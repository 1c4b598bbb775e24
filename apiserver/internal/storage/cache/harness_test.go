package cache_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
)

const prefix = "/registry/things/"

// bed is a cache over a real etcd.
type bed struct {
	*cache.Cache
	t      testing.TB
	store  storage.Interface
	waited *atomic.Int64 // by the last reader that had to wait, in nanoseconds
}

func start(t testing.TB, store storage.Interface, clock clock.WithTicker) *bed {
	t.Helper()
	waited := &atomic.Int64{}
	c := cache.New(cache.Options{
		Storage:    store,
		Prefix:     prefix,
		Namespaced: true,
		Kind:       schema.GroupVersionKind{Version: "v1", Kind: "Thing"},
		Fields: func(value []byte) (fields.Set, error) {
			var thing struct{ Color string }
			err := json.Unmarshal(value, &thing)
			return fields.Set{"color": thing.Color}, err
		},
		ReadWaited: func(d time.Duration) { waited.Store(int64(d)) },
		Clock:      clock,
		Logger:     zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cache ended with %v", err)
		}
	})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &bed{Cache: c, t: t, store: store, waited: waited}
}

func thing(name, color string) []byte {
	return fmt.Appendf(nil, `{"kind":"Thing","metadata":{"name":%q,"labels":{"color":%q}},"color":%q}`, name, color, color)
}

func (b *bed) create(name, color string) storage.Object {
	b.t.Helper()
	made, err := b.store.Create(b.t.Context(), prefix+name, thing(name, color), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

func (b *bed) update(old storage.Object, color string) storage.Object {
	b.t.Helper()
	name := strings.TrimPrefix(old.Key, prefix)
	made, err := b.store.Update(b.t.Context(), old.Key, old.Revision, thing(name, color), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

func (b *bed) delete(old storage.Object) storage.Object {
	b.t.Helper()
	gone, err := b.store.Delete(b.t.Context(), old.Key, old.Revision)
	if err != nil {
		b.t.Fatal(err)
	}
	return gone
}

func (b *bed) current() {
	b.t.Helper()
	if err := b.WaitCurrent(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) watch(o cache.WatchOptions) <-chan cache.WatchEvent {
	b.t.Helper()
	if o.Prefix == "" {
		o.Prefix = prefix
	}
	w, err := b.Watch(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	return cache.Channel(b.t.Context(), w.Events())
}

// seen is the next event as "TYPE key's-name@revision".
func seen(events <-chan cache.WatchEvent) string {
	e, ok := <-events
	if !ok {
		return "end"
	}
	var object struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	if err := json.Unmarshal(e.Object.JSON, &object); err != nil {
		return err.Error()
	}
	if e.Frame != nil {
		if want := `{"type":"` + e.Type + `","object":` + string(e.Object.JSON) + "}\n"; string(e.Frame) != want {
			return fmt.Sprintf("frame %s instead of %s", e.Frame, want)
		}
	}
	return fmt.Sprintf("%s %s@%s", e.Type, object.Metadata.Name, object.Metadata.ResourceVersion)
}

func at(kind string, o storage.Object) string {
	return fmt.Sprintf("%s %s@%d", kind, strings.TrimPrefix(o.Key, prefix), o.Revision)
}

func selectColor(color string) cache.Selection {
	return cache.Selection{Prefix: prefix, Labels: labels.SelectorFromSet(labels.Set{"color": color})}
}

func names(list cache.List) string {
	var out []string
	for _, e := range list.Entries {
		out = append(out, strings.TrimPrefix(e.Key, prefix))
	}
	return strings.Join(out, " ")
}
