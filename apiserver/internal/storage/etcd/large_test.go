package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// A list of values too large for two messages of the connection works, and so
// does a watch that catches up with them.
func TestValuesLargerThanAMessageTogether(t *testing.T) {
	const (
		values  = 30
		message = 4 << 20 // more than etcd's fragment size, which is its largest request
		size    = 800 << 10
	)
	_, embedded := etcdtest.StartIn(t, t.TempDir())
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + embedded.Socket}, MaxCallRecvMsgSize: message, MaxCallSendMsgSize: message,
		Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s := etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}})
	ctx := t.Context()
	value := fmt.Appendf(nil, `{"kind":"ConfigMap","data":{"a":%q}}`, bytes.Repeat([]byte("x"), size))
	var before int64
	for i := range values {
		o, err := s.Create(ctx, fmt.Sprintf("/r/%02d", i), value, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			before = o.Revision - 1
		}
	}
	if all, _, remaining, err := s.List(ctx, "/r/", "", 0, 0); err != nil || len(all) != values || remaining != 0 {
		t.Errorf("listed %d, %d left, %v", len(all), remaining, err)
	}
	if some, _, remaining, err := s.List(ctx, "/r/", "/r/01", 7, 0); err != nil || len(some) != 7 || remaining != 21 {
		t.Errorf("listed %d of 7, %d left, %v", len(some), remaining, err)
	}
	watch, err := s.Watch(ctx, "/r/", before)
	if err != nil {
		t.Fatal(err)
	}
	for seen := 0; seen < values; {
		events, ok := <-watch.Events()
		if !ok {
			t.Fatalf("the watch ended after %d events: %v", seen, watch.Err())
		}
		seen += len(events)
	}
}

// A value that etcd's gRPC server refuses to receive is too large, like one that etcd refuses.
func TestAValueLargerThanAMessage(t *testing.T) {
	const message = 16 << 20
	_, embedded := etcdtest.StartIn(t, t.TempDir())
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + embedded.Socket}, MaxCallRecvMsgSize: message, MaxCallSendMsgSize: message,
		Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s := etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}})
	value := fmt.Appendf(nil, `{"kind":"ConfigMap","data":{"a":%q}}`, bytes.Repeat([]byte("x"), 10<<20))
	if _, err := s.Create(t.Context(), "/r/a", value, 0); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("created with %v", err)
	}
}

// exhausted is a Transformer whose key service has no quota left.
type exhausted struct{}

var errQuota = status.Error(codes.ResourceExhausted, "quota exceeded")

func (exhausted) Seal(context.Context, string, []byte) ([]byte, error) {
	return nil, fmt.Errorf("encrypt: %w", errQuota)
}

func (exhausted) Open(context.Context, string, []byte) ([]byte, bool, error) {
	return nil, false, fmt.Errorf("decrypt: %w", errQuota)
}

// A key service that refuses with gRPC's code for too large messages says nothing of the value's size.
func TestAKeyServiceWithoutQuota(t *testing.T) {
	plain, embedded := etcdtest.StartIn(t, t.TempDir())
	if _, err := plain.Create(t.Context(), "/r/a", []byte(`{"metadata":{}}`), 0); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + embedded.Socket}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s := etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}, Transformer: exhausted{}})
	if _, err := s.Create(t.Context(), "/r/b", []byte(`{"metadata":{}}`), 0); !errors.Is(err, errQuota) || errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("created with %v", err)
	}
	if _, err := s.Get(t.Context(), "/r/a"); !errors.Is(err, errQuota) || errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("read with %v", err)
	}
}

// TestStoredShorter: a value that is large in JSON is in protobuf in etcd if that is shorter and says
// the same, and reads as it was written.
func TestStoredShorter(t *testing.T) {
	s, embedded := etcdtest.StartIn(t, t.TempDir())
	configMap := func(value string) []byte {
		out, err := scheme.Encode(&core.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": value},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	unknown := bytes.Replace(configMap(strings.Repeat("<", 200<<10)), []byte(`"data":`), []byte(`"unknown":1,"data":`), 1)
	for name, test := range map[string]struct {
		value []byte
		short bool
	}{
		"small":             {configMap("<"), false},
		"below":             {configMap(strings.Repeat("<", 170<<10)), false},
		"above":             {configMap(strings.Repeat("<", 200<<10)), true},
		"no shorter":        {[]byte(`{"kind":"Secret","apiVersion":"example.com/v1","metadata":{},"data":"` + strings.Repeat("x", 1100<<10) + `"}`), false},
		"would lose fields": {unknown, false},
	} {
		key := "/r/" + strings.ReplaceAll(name, " ", "-")
		created, err := s.Create(t.Context(), key, test.value, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read, err := s.Get(t.Context(), key)
		if err != nil || !bytes.Equal(read.Value, created.Value) || read.Stale {
			t.Errorf("%s: wrote %d bytes, read %d, stale %v, %v", name, len(created.Value), len(read.Value), read.Stale, err)
		}
		raw, err := embedded.Client().Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if stored := raw.Kvs[0].Value; bytes.HasPrefix(stored, []byte(scheme.ProtobufPrefix)) != test.short || test.short && len(stored) > len(test.value)/5 {
			t.Errorf("%s: %d bytes are stored as %d that begin with %q", name, len(test.value), len(stored), stored[:8])
		}
	}
}
