package registry_test

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func TestWithoutEtcd(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, filepath.Join(t.TempDir(), "etcd"))
	b := &bed{t: t, clock: clocktesting.NewFakeClock(now), storage: store}
	b.Store = registry.NewStore(strategy(), registry.Options{Storage: store, Clock: b.clock, Logger: zap.NewNop()})
	run(t, b.Store.Run)
	if err := b.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.create(service("a"))
	b.exists("a")
	if err := embedded.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.GetTyped(t.Context(), "ns", "a", "0"); err != nil {
		t.Errorf("a read that need not be new: %v", err)
	}
	_, err := b.GetTyped(t.Context(), "ns", "a", "")
	if seconds, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !ok || seconds == 0 {
		t.Errorf("read: %v", err)
	}
	if _, err := b.CreateTyped(t.Context(), service("b")); err == nil || apierrors.IsAlreadyExists(err) {
		t.Errorf("write: %v", err)
	}
}

func TestObjectsThatEtcdDoesNotTake(t *testing.T) {
	b := start(t)
	s := service("a")
	s.Spec.ExternalName = strings.Repeat("x", 9<<20)
	if _, err := b.CreateTyped(t.Context(), s); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("got %v", err)
	}
}
