package cache_test

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage/etcd"
)

// startProcess starts the machine's own etcd, if it has one, and returns a
// store on it. Both end with the test.
func startProcess(t *testing.T) *etcd.Store {
	t.Helper()
	program, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("no etcd is installed on this machine: ", err)
	}
	address, peer := freeAddress(t), freeAddress(t)
	process := exec.Command(program, "--data-dir", t.TempDir(), "--name", "t",
		"--listen-client-urls", "http://"+address, "--advertise-client-urls", "http://"+address,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "t=http://"+peer)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = process.Wait() // it was killed
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := client.Get(ctx, "ready", clientv3.WithSerializable()); err != nil {
		t.Fatalf("etcd does not answer: %v", err)
	}
	return etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
