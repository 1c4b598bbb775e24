package etcd_test

import (
	"errors"
	"testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func TestABrokenValueHidesNoOther(t *testing.T) {
	s, embedded := etcdtest.StartIn(t, t.TempDir())
	if _, err := s.Create(t.Context(), "/r/good", object("good"), 0); err != nil {
		t.Fatal(err)
	}
	whole := string(object("broken"))
	for _, value := range []string{"k8s\x00nonsense", whole[:len(whole)-1], whole[:len(whole)-1] + "\x82", whole + "}", "[]"} {
		if _, err := embedded.Client().Put(t.Context(), "/r/broken", value); err != nil {
			t.Fatal(err)
		}
		got, _, _, err := s.List(t.Context(), "/r/", "", 0, 0)
		if err != nil || len(got) != 2 || got[0].Key != "/r/broken" || !errors.Is(got[0].Unreadable, storage.ErrUnreadable) || got[1].Key != "/r/good" ||
			got[1].Unreadable != nil {
			t.Fatalf("%q: got %v, %v", value, got, err)
		}
		one, err := s.Get(t.Context(), "/r/broken")
		if !errors.Is(err, storage.ErrUnreadable) || one.Revision != got[0].Revision {
			t.Errorf("%q by itself: %v, %v", value, one, err)
		}
	}
}
