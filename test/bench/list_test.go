package bench_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"kctl/test/harness"
)

const (
	manyPods  = 10_000
	largePod  = 2500 // bytes stored for each pod
	listTurns = 15
	podsPath  = "/api/v1/pods"
)

// BenchmarkLists lists 10,000 pods, 25 MB in all, beside an HTTPS server that
// writes the same bytes from memory; and in protobuf, as upstream's programs do,
// where the first list is reported by itself. It also reports the server's memory
// while it lists, and how long it takes to start with these pods.
func BenchmarkLists(b *testing.B) {
	etcd := harness.StartEtcd(b)
	s := startServer(b, "--etcd-servers="+etcd.URL)
	empty := s.started
	fill(b, s)
	s.stop()
	s.start()
	filled := s.started
	client := httpClient()
	ready := readyBytes(b, read(b, s, client, podsPath+"?resourceVersion=0"))
	for b.Loop() {
		cached, consistent, floor := make([]time.Duration, 0, listTurns), make([]time.Duration, 0, listTurns), make([]time.Duration, 0, listTurns)
		before := memory(b, s.cmd.Process.Pid, "VmRSS")
		forgetPeak(b, s.cmd.Process.Pid)
		for turn := range listTurns {
			floor = append(floor, timed(func() { ready.read(b) }))
			// Either is first in half of the turns: the second meets what the first
			// left behind.
			first, second := podsPath+"?resourceVersion=0", podsPath
			if turn%2 == 1 {
				first, second = second, first
			}
			took := [2]time.Duration{timed(func() { drain(b, s, client, first) }), timed(func() { drain(b, s, client, second) })}
			cached, consistent = append(cached, took[turn%2]), append(consistent, took[1-turn%2])
		}
		list, plain := median(cached), median(floor)
		b.ReportMetric(ms(list), "ms-list")
		b.ReportMetric(ms(plain), "ms-ready-bytes")
		b.ReportMetric(float64(list)/float64(plain), "x-floor")
		b.ReportMetric(ms(median(consistent)-list), "ms-more-consistent")
		b.ReportMetric(float64(ready.size)/1e6, "MB-list")
		b.ReportMetric(float64(before)/(1<<20), "MiB-before")
		b.ReportMetric(float64(memory(b, s.cmd.Process.Pid, "VmHWM"))/(1<<20), "MiB-peak")
		b.ReportMetric(ms(empty), "ms-start-empty")
		b.ReportMetric(ms(filled), "ms-start-filled")
		listsInProtobuf(b, s)
	}
	b.ReportMetric(0, "ns/op")
}

// listsInProtobuf reports the lists of a client that speaks protobuf.
func listsInProtobuf(b *testing.B, s *server) {
	b.Helper()
	client := httpClient()
	client.Transport = accepting{runtime.ContentTypeProtobuf, client.Transport}
	var body []byte
	first := timed(func() { body = read(b, s, client, podsPath+"?resourceVersion=0") })
	ready := readyBytes(b, body)
	lists, floor := make([]time.Duration, 0, listTurns), make([]time.Duration, 0, listTurns)
	for range listTurns {
		floor = append(floor, timed(func() { ready.read(b) }))
		lists = append(lists, timed(func() { drain(b, s, client, podsPath+"?resourceVersion=0") }))
	}
	b.ReportMetric(ms(first), "ms-protobuf-first")
	b.ReportMetric(ms(median(lists)), "ms-protobuf")
	b.ReportMetric(float64(median(lists))/float64(median(floor)), "x-protobuf-floor")
	b.ReportMetric(float64(memory(b, s.cmd.Process.Pid, "VmHWM"))/(1<<20), "MiB-peak-protobuf")
}

// accepting asks for answers of one media type.
type accepting struct {
	media string
	http.RoundTripper
}

func (a accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", a.media)
	return a.RoundTripper.RoundTrip(r)
}

func fill(b *testing.B, s *server) {
	b.Helper()
	raw, err := dialRaw(s.address)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.close()
	const path = "/api/v1/namespaces/default/pods"
	eventually(b, func() error { return raw.post(path, []byte(pod("first"))) })
	padding := strings.Repeat("x", max(0, largePod-len(read(b, s, httpClient(), path+"/first"))))
	names := make(chan string)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for name := range names {
				body := strings.Replace(pod(name), `"example.org/note":"`, `"example.org/note":"`+padding, 1)
				if err := raw.post(path, []byte(body)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range manyPods - 1 {
		names <- fmt.Sprintf("pod-%05d", i)
	}
	close(names)
	wg.Wait()
}

func read(b *testing.B, s *server, client *http.Client, path string) []byte {
	b.Helper()
	answer, err := s.request(b.Context(), client, http.MethodGet, path, "")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s, %v", path, answer.Status, err)
	}
	return body
}

func drain(b *testing.B, s *server, client *http.Client, path string) {
	if code := s.get(client, path); code != http.StatusOK {
		b.Errorf("%s: %d", path, code)
	}
}

// plain is an HTTPS server that only writes a ready answer.
type plain struct {
	*httptest.Server
	client *http.Client
	size   int
}

func readyBytes(b *testing.B, body []byte) *plain {
	b.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	b.Cleanup(server.Close)
	return &plain{Server: server, client: httpClient(), size: len(body)}
}

func (p *plain) read(b *testing.B) {
	answer, err := p.client.Get(p.URL)
	if err != nil {
		b.Error(err)
		return
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); err != nil || int(n) != p.size {
		b.Errorf("%d of %d bytes, %v", n, p.size, err)
	}
}

func timed(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

// forgetPeak resets the kernel's record of a process's peak memory.
func forgetPeak(b *testing.B, pid int) {
	b.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600); err != nil {
		b.Fatal(err)
	}
}
