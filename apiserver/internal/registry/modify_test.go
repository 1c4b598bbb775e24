package registry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// narrow takes no update that is longer than most.
type narrow struct {
	storage.Interface
	most int
}

func (n narrow) Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (storage.Object, error) {
	if len(value) > n.most {
		return storage.Object{}, &storage.KeyError{Op: "update", Key: key, Err: storage.ErrTooLarge}
	}
	return n.Interface.Update(ctx, key, revision, value, ttl)
}

// A loop's change of an object that is too large only because of its managedFields is stored
// without them, so that the loop goes on.
func TestChangesOfLoopsMayDropManagedFields(t *testing.T) {
	store := registry.NewStore(strategy(), registry.Options{
		Storage: narrow{etcdtest.Start(t), 5_000}, Clock: clocktesting.NewFakeClock(now), Logger: zap.NewNop(),
	})
	run(t, store.Run)
	s := service("large")
	s.Annotations = map[string]string{}
	for i := range 40 { // of 60 bytes each, repeated in managedFields
		s.Annotations[fmt.Sprintf("a-key-so-long-that-managed-fields-take-much-to-own-it-%d", i)] = "A"
	}
	made, err := store.CreateTyped(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.ManagedFields) == 0 {
		t.Fatal("it belongs to nobody")
	}
	err = registry.Modify(t.Context(), store, registry.Target{Namespace: "ns", Name: "large"}, registry.ControllerManager,
		func(obj core.Object) (core.Object, error) {
			metav1.SetMetaDataAnnotation(&obj.(*corev1.Service).ObjectMeta, "by", "a loop")
			return obj, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := registry.GetStored[*corev1.Service](t.Context(), store, "ns", "large"); err != nil || got.Annotations["by"] != "a loop" ||
		len(got.ManagedFields) > 0 {
		t.Errorf("stored with %d managers and %q: %v", len(got.ManagedFields), got.Annotations["by"], err)
	}
}
