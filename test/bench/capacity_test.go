package bench_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kctl/test/harness"
)

// BenchmarkCapacity fills an API server with nodes, pods and events, and
// reports what a thousand of each take in etcd's file, and what all of them
// take in the server's memory.
func BenchmarkCapacity(b *testing.B) {
	const many = 5000
	etcd := harness.StartEtcd(b)
	s := startServer(b, "--etcd-servers="+etcd.URL)
	for b.Loop() {
		server, file := settled(b, s, etcd)
		b.ReportMetric(mebi(server), "MiB-empty")
		for _, kind := range []struct {
			name, path string
			object     func(i int) string
		}{
			{"nodes", "/api/v1/nodes", nodeObject},
			{"pods", "/api/v1/namespaces/default/pods", podObject},
			{"events", "/api/v1/namespaces/default/events", eventObject},
		} {
			create(b, s, kind.path, many, kind.object)
			nowServer, nowFile := settled(b, s, etcd)
			b.ReportMetric(mebi(nowFile-file)*1000/many, "MiB-etcd-1000-"+kind.name)
			server, file = nowServer, nowFile
		}
		b.ReportMetric(mebi(server), "MiB-full")
		b.ReportMetric(mebi(float64(memory(b, s.cmd.Process.Pid, "VmRSS"))), "MiB-full-resident")
	}
	b.ReportMetric(0, "ns/op")
}

func mebi(bytes float64) float64 { return bytes / (1 << 20) }

// settled is the server's memory after a restart and a garbage collection, and
// how much of etcd's file is in use after a compaction.
func settled(b *testing.B, s *server, etcd *harness.Etcd) (server, file float64) {
	b.Helper()
	s.stop()
	etcd.Compact(b)
	s.start()
	client := httpClient()
	for range 2 { // the second collects what sync.Pools have kept
		drain(b, s, client, "/debug/pprof/heap?gc=1")
	}
	answer, err := http.Get(etcd.URL + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return gauge(b, read(b, s, client, "/metrics"), "go_memstats_alloc_bytes"), gauge(b, text, "etcd_mvcc_db_total_size_in_use_in_bytes")
}

// gauge finds the value of a metric without labels in what /metrics returns.
func gauge(b *testing.B, metrics []byte, name string) float64 {
	b.Helper()
	for line := range strings.SplitSeq(string(metrics), "\n") {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatal(err)
			}
			return value
		}
	}
	b.Fatalf("there is no %s", name)
	return 0
}

func create(b *testing.B, s *server, path string, count int, object func(i int) string) {
	b.Helper()
	var wg sync.WaitGroup
	numbers := make(chan int)
	client := httpClient()
	for range writers {
		wg.Go(func() {
			for i := range numbers {
				answer, err := s.request(b.Context(), client, http.MethodPost, path, object(i))
				if err != nil {
					b.Error(err)
					continue
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if answer.StatusCode != http.StatusCreated {
					b.Errorf("%s: %s", path, answer.Status)
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}

// nodeObject is a node with as much in its status as a kubelet reports.
func nodeObject(i int) string {
	images := make([]string, 20)
	for j := range images {
		images[j] = fmt.Sprintf(`{"names":["registry.example.org/team/program-%d@sha256:%064d","registry.example.org/team/program-%d:v1.2.3"],"sizeBytes":12345678}`,
			j, j, j)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%05d","labels":{"kubernetes.io/hostname":"node-%05d","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64"}},"status":{"images":[%s]}}`, i, i, strings.Join(images, ","))
}

func podObject(i int) string { return pod(fmt.Sprintf("pod-%05d", i)) }

func eventObject(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"event-%05d","namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default","name":"pod-%05d","apiVersion":"v1"},`+
		`"reason":"Started","message":"Started container c in a pod of some length of name","type":"Normal","count":1,"source":{"component":"kubelet","host":"node-00001"}}`, i, i)
}
