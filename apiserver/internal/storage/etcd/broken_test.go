package etcd_test

import (
	"errors"
	"testing"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd"
)

func TestABrokenValueHidesNoOther(t *testing.T) {
	embedded, err := etcd.StartEmbedded(t.Context(), t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := embedded.Stop(); err != nil {
			t.Error(err)
		}
	}()
	s := etcd.NewStore(etcd.Options{Client: embedded.Client(), Direct: embedded.Direct(), Clock: clock.RealClock{}})
	if _, err := s.Create(t.Context(), "/r/good", object("good"), 0); err != nil {
		t.Fatal(err)
	}
	whole := string(object("broken"))
	for _, value := range []string{"k8s\x00nonsense", whole[:len(whole)-1], whole[:len(whole)-1] + "\x82", whole + "}", "[]"} {
		if _, err := embedded.Client().Put(t.Context(), "/r/broken", value); err != nil {
			t.Fatal(err)
		}
		got, _, _, err := s.List(t.Context(), "/r/", "", 0, 0)
		if err != nil || len(got) != 2 || got[0].Key != "/r/broken" || !errors.Is(got[0].Unreadable, storage.ErrUnreadable) || got[1].Key != "/r/good" || got[1].Unreadable != nil {
			t.Fatalf("%q: got %v, %v", value, got, err)
		}
		one, err := s.Get(t.Context(), "/r/broken")
		if !errors.Is(err, storage.ErrUnreadable) || one.Revision != got[0].Revision {
			t.Errorf("%q by itself: %v, %v", value, one, err)
		}
	}
}
