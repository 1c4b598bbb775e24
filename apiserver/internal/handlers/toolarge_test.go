package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// narrow accepts values up to a size.
type narrow struct {
	storage.Interface
	limit int
}

func (s narrow) refusal(op, key string, value []byte) error {
	if len(value) > s.limit {
		return &storage.KeyError{Op: op, Key: key, Err: storage.ErrTooLarge}
	}
	return nil
}

func (s narrow) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error) {
	if err := s.refusal("create", key, value); err != nil {
		return storage.Object{}, err
	}
	return s.Interface.Create(ctx, key, value, ttl)
}

func (s narrow) Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (storage.Object, error) {
	if err := s.refusal("update", key, value); err != nil {
		return storage.Object{}, err
	}
	return s.Interface.Update(ctx, key, revision, value, ttl)
}

// TestFieldsThatMakeItTooLarge: an object that is too large only because of its
// managedFields is stored without them, unless it is applied.
func TestFieldsThatMakeItTooLarge(t *testing.T) {
	s := startOn(t, narrow{etcdtest.Start(t), 10_000})
	const keys = 100 // of 70 bytes each, repeated in a manager's fields
	data := map[string]string{}
	for i := range keys {
		data[fmt.Sprintf("a-key-that-is-long-so-that-it-takes-many-managed-fields-to-own-it-%d", i)] = "A"
	}
	large, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	for method, headers := range map[string][]string{"POST": nil, "PUT": nil, "PATCH": {"Content-Type", "application/merge-patch+json"}} {
		at, want := collection+"/a", http.StatusOK
		if method == "POST" {
			at, want = collection, http.StatusCreated
		} else {
			s.create("a", "1")
		}
		a := s.do(method, at, string(large), headers...)
		if a.code != want {
			t.Fatalf("%s: %d %.300s", method, a.code, a.body)
		}
		var got core.ConfigMap
		if a.into(t, &got); len(got.ManagedFields) > 0 || len(got.Data) < keys {
			t.Errorf("%s: %d managers, %d keys", method, len(got.ManagedFields), len(got.Data))
		}
		a = s.do("PATCH", collection+"/a?fieldManager=m&force=true", string(large), "Content-Type", "application/apply-patch+yaml")
		if a.code != http.StatusRequestEntityTooLarge {
			t.Errorf("applied after %s: %d %.300s", method, a.code, a.body)
		}
		s.do("DELETE", collection+"/a", "")
	}
}
