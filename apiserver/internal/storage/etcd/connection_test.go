package etcd_test

import (
	"os"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/connectivity"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// TestWritesWaitForAConnection: while no etcd can be reached, a write waits, since nothing of it has
// been sent. It is done as soon as there is one.
func TestWritesWaitForAConnection(t *testing.T) {
	_, embedded := etcdtest.StartIn(t, t.TempDir())
	socket := filepath.Join(t.TempDir(), "etcd")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + socket}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s := etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}})
	connection := client.ActiveConnection()
	connection.Connect()
	for state := connection.GetState(); state != connectivity.TransientFailure; state = connection.GetState() {
		connection.WaitForStateChange(t.Context(), state)
	}
	done := make(chan error)
	go func() {
		_, err := s.Create(t.Context(), "/r/a", []byte(`{"kind":"ConfigMap"}`), 0)
		done <- err
	}()
	if err := os.Symlink(embedded.Socket, socket); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
