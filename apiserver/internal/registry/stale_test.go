package registry_test

import (
	"context"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// frozen is a store that reports no changes.
type frozen struct{ storage.Interface }

type silentWatch struct{ events chan []storage.Event }

func (s frozen) Watch(ctx context.Context, _ string, _ int64) (storage.Watch, error) {
	w := silentWatch{make(chan []storage.Event)}
	context.AfterFunc(ctx, func() { close(w.events) })
	return w, nil
}

func (w silentWatch) Events() <-chan []storage.Event        { return w.events }
func (w silentWatch) Err() error                            { return context.Canceled }
func (w silentWatch) RequestProgress(context.Context) error { return nil }

// A cache that is behind must not make an update or a deletion wrong.
func TestWritesOverACacheThatIsBehind(t *testing.T) {
	store := etcdtest.Start(t)
	b := &bed{t: t, clock: clocktesting.NewFakeClock(now), storage: store}
	b.Store = registry.NewStore(strategy(), registry.Options{Storage: frozen{store}, Clock: b.clock, Logger: zap.NewNop()})
	first := b.create(service("a"))
	run(t, b.Store.Run)
	if err := b.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Labels = map[string]string{"x": "1"}
	second, err := b.put(first)
	if err != nil {
		t.Fatal(err)
	}
	// To the cache, which still has the first state, this looks like no change.
	third, err := b.UpdateTyped(t.Context(), "ns", "a", "", func(s *corev1.Service) error { s.Labels = nil; return nil })
	if err != nil || third.ResourceVersion == second.ResourceVersion || third.Labels != nil {
		t.Errorf("labels taken away: %v, %v", third.ObjectMeta, err)
	}
	fresh := b.create(service("b"))
	fresh.Labels = map[string]string{"x": "1"}
	if _, err := b.put(fresh); err != nil {
		t.Errorf("update of what the cache does not have: %v", err)
	}
	o := grace(0)
	o.Preconditions = &metav1.Preconditions{ResourceVersion: &third.ResourceVersion}
	if _, gone := b.delete("a", o); !gone {
		t.Error("the present version was refused")
	}
	if _, gone := b.delete("b", grace(0)); !gone {
		t.Error("an object that the cache does not have was not deleted")
	}
}
