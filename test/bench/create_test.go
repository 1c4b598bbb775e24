package bench_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"kctl/test/harness"
)

const (
	writers = 32
	window  = 3 * time.Second // length of each measurement
	turns   = 4               // both are measured in turns, to meet the same conditions
)

// BenchmarkCreates has 32 clients create pods of 1 KB over HTTP/2 and TLS, and
// 32 clients put values as large as the stored pods into the same kind of etcd.
// The clients of each kind share one connection and have their bytes ready.
// Between the two stands a bare handler (bareCreates), the least that a server
// can do: x-bare is our share of its rate. "Alone" is one client that waits for
// each answer: then what counts is not computing but how many hands a request
// goes through.
func BenchmarkCreates(b *testing.B) {
	b.Run("external", func(b *testing.B) {
		// The floor has an etcd of its own: in the other one, the server's watch
		// would be told of every put.
		etcd, floor := harness.StartEtcd(b), harness.StartEtcd(b)
		s := startServer(b, "--etcd-servers="+etcd.URL)
		compareCreates(b, s, etcd.URL, floor.URL, writers)
	})
	b.Run("external-alone", func(b *testing.B) {
		etcd, floor := harness.StartEtcd(b), harness.StartEtcd(b)
		s := startServer(b, "--etcd-servers="+etcd.URL)
		compareCreates(b, s, etcd.URL, floor.URL, 1)
	})
	b.Run("embedded", func(b *testing.B) {
		s := startServer(b)
		endpoint := "unix://" + filepath.Join(s.dir, "etcd", "etcd.sock")
		compareCreates(b, s, endpoint, endpoint, writers)
	})
}

func etcdClient(b testing.TB, endpoint string) *clientv3.Client {
	b.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return client
}

func compareCreates(b *testing.B, s *server, endpoint, floor string, writers int) {
	raw := etcdClient(b, floor)
	client, err := dialRaw(s.address)
	if err != nil {
		b.Fatal(err)
	}
	defer client.close()
	const path = "/api/v1/namespaces/default/pods"
	eventually(b, func() error { return client.post(path, []byte(pod("size"))) })
	found, err := etcdClient(b, endpoint).Get(b.Context(), "/registry/pods/default/size")
	if err != nil || len(found.Kvs) != 1 {
		b.Fatal("the first pod is not in etcd: ", err)
	}
	stored := string(found.Kvs[0].Value)
	bareServer := startBareCreates(b, floor, stored)
	bareClient, err := dialRaw(bareServer.address)
	if err != nil {
		b.Fatal(err)
	}
	defer bareClient.close()
	for b.Loop() {
		var creates, puts, bare, spent float64
		for turn := range turns {
			puts += rate(b, writers, func(n int64) error {
				_, err := raw.Put(context.Background(), fmt.Sprintf("/raw/%d/%d/%d", b.N, turn, n), stored)
				return err
			}) / turns
			bare += rate(b, writers, func(n int64) error {
				return bareClient.post(path, []byte(pod(fmt.Sprintf("bare-%d-%d-%d", b.N, turn, n))))
			}) / turns
			before := cpu(b, s.cmd.Process.Pid)
			var made atomic.Int64
			creates += rate(b, writers, func(n int64) error {
				made.Add(1)
				return client.post(path, []byte(pod(fmt.Sprintf("create-%d-%d-%d", b.N, turn, n))))
			}) / turns
			spent += float64(cpu(b, s.cmd.Process.Pid)-before) / float64(made.Load()) / turns
		}
		b.ReportMetric(creates, "creates/s")
		b.ReportMetric(puts, "raw-puts/s")
		b.ReportMetric(creates/puts, "x-floor")
		b.ReportMetric(bare/puts, "x-bare-floor")
		b.ReportMetric(creates/bare, "x-bare")
		b.ReportMetric(spent/1000, "µs-cpu/create")
		b.ReportMetric(float64(len(stored)), "B-stored")
	}
	b.ReportMetric(0, "ns/op")
}

// rate is how often per second do succeeds when all writers call it for a
// while.
func rate(b *testing.B, writers int, do func(n int64) error) float64 {
	b.Helper()
	// Calls that are under way at the end are awaited, and count.
	var over atomic.Bool
	defer time.AfterFunc(window, func() { over.Store(true) }).Stop()
	var n, done atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range writers {
		wg.Go(func() {
			for !over.Load() {
				if err := do(n.Add(1)); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds()
}

// eventually retries what can't succeed at once: a loop creates the service
// account of a new namespace.
func eventually(b testing.TB, try func() error) {
	b.Helper()
	harness.Eventually(b, 30*time.Second, try)
}
