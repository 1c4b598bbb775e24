// Package etcdtest gives tests a real etcd of their own, in the test's
// temporary directory and process. Only tests import it.
package etcdtest

import (
	"testing"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage/etcd"
)

// Start starts an etcd that ends with the test, and returns a store on it.
func Start(t testing.TB) *etcd.Store {
	t.Helper()
	store, _ := StartIn(t, t.TempDir())
	return store
}

// StartIn starts an etcd on dir. It ends with the test if the test did not
// stop it before.
func StartIn(t testing.TB, dir string) (*etcd.Store, *etcd.Embedded) {
	t.Helper()
	embedded, err := etcd.StartEmbedded(t.Context(), dir, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := embedded.Stop(); err != nil {
			t.Error(err)
		}
	})
	store := etcd.NewStore(etcd.Options{
		Client:          embedded.Client(),
		Direct:          embedded.Direct(),
		CurrentRevision: embedded.Revision,
		Clock:           clock.RealClock{},
	})
	return store, embedded
}
