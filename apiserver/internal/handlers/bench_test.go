package handlers_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage/etcd"
)

const clients = 32

// parallel runs work from 32 clients, n times in all, and returns the rate per
// second.
func parallel(b *testing.B, n int, work func(client, i int) error) float64 {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for client := range clients {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > n {
					return
				}
				if err := work(client, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(begin).Seconds()
}

// BenchmarkCreate measures creates over HTTP, and beside them raw puts of the
// same bytes by as many clients to an etcd of the same kind.
func BenchmarkCreate(b *testing.B) {
	s := start(b)
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	embedded, err := etcd.StartEmbedded(b.Context(), b.TempDir(), zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := embedded.Stop(); err != nil {
			b.Error(err)
		}
	}()
	body := func(i int) string {
		return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c-%d"},"data":{"k":%q}}`, i, strings.Repeat("x", 1024))
	}
	sample := string(bytes.TrimSpace(s.do("POST", collection, body(0)).body))
	for b.Loop() {
		const n = 4000
		raw := parallel(b, n, func(_, i int) error {
			_, err := embedded.Client().Put(b.Context(), fmt.Sprintf("/registry/configmaps/default/c-%d", i), sample)
			return err
		})
		creates := parallel(b, n, func(_, i int) error { return post(client, s.URL+collection, body(i)) })
		b.ReportMetric(raw, "puts/s")
		b.ReportMetric(creates, "creates/s")
		b.ReportMetric(creates/raw, "creates/put")
		s.do("DELETE", collection, "")
	}
}

func post(client *http.Client, url, body string) error {
	res, err := client.Post(url, jsonType, strings.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("create: %s", res.Status)
	}
	return nil
}

// BenchmarkList measures a list of 10,000 objects over HTTP, and beside it a
// copy of its bytes.
func BenchmarkList(b *testing.B) {
	s := start(b)
	parallel(b, 10000, func(_, i int) error {
		_, err := s.configMaps.CreateTyped(b.Context(), newConfigMap(fmt.Sprintf("c-%05d", i), strings.Repeat("x", 500)))
		return err
	})
	list := s.do("GET", collection, "").body
	into := make([]byte, len(list))
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	b.SetBytes(int64(len(list)))
	var copying, serving time.Duration
	rounds := 0
	buffer := make([]byte, 1<<20)
	for b.Loop() {
		begin := time.Now()
		copy(into, list)
		copied := time.Now()
		res, err := client.Get(s.URL + collection + "?resourceVersion=0")
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, buffer); err != nil || int(n) != len(list) {
			b.Fatalf("%d bytes of %d, %v", n, len(list), err)
		}
		if err := res.Body.Close(); err != nil {
			b.Fatal(err)
		}
		copying += copied.Sub(begin)
		serving += time.Since(copied)
		rounds++
	}
	b.ReportMetric(float64(copying.Microseconds())/float64(rounds), "µs/memcpy")
	b.ReportMetric(float64(serving.Microseconds())/float64(rounds), "µs/list")
}
