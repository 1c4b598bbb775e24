package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

const (
	writers = 32
	window  = 4 * time.Second // of each measurement
)

// BenchmarkCreates has 32 clients create pods, and then 32 clients put values
// of the same size into the same etcd.
func BenchmarkCreates(b *testing.B) {
	etcd := harness.StartEtcd(b)
	c := harness.Start(b, harness.Options{
		Flags:   []string{"--etcd-servers", etcd.URL},
		Without: []string{"scheduler", "kubelet", "containerd", "registry"},
	})
	client := c.Client()
	stored, err := json.Marshal(c.Create(harness.Pod("size", harness.Demo)))
	if err != nil {
		b.Fatal(err)
	}
	raw, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.URL}, DialTimeout: 5 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	for b.Loop() {
		// In turns, so that both meet the same machine.
		var creates, puts float64
		const turns = 3
		for turn := range turns {
			creates += rate(b, func(ctx context.Context, n int64) error {
				pod := harness.Pod(fmt.Sprintf("create-%d-%d-%d", b.N, turn, n), harness.Demo)
				_, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
				return err
			}) / turns
			puts += rate(b, func(ctx context.Context, n int64) error {
				_, err := raw.Put(ctx, fmt.Sprintf("/raw/%d/%d/%d", b.N, turn, n), string(stored))
				return err
			}) / turns
		}
		b.ReportMetric(creates, "creates/s")
		b.ReportMetric(puts, "raw-puts/s")
		b.ReportMetric(creates/puts, "x-floor")
	}
	b.ReportMetric(0, "ns/op")
}

// rate is how often a second do succeeds, called by all writers for a while.
func rate(b *testing.B, do func(ctx context.Context, n int64) error) float64 {
	b.Helper()
	// Calls under way at the end are waited for, and count.
	var over atomic.Bool
	defer time.AfterFunc(window, func() { over.Store(true) }).Stop()
	var n, done atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range writers {
		wg.Go(func() {
			for !over.Load() {
				if err := do(b.Context(), n.Add(1)); err != nil {
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
