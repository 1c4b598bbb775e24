package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

const (
	watched    = 300
	manyEyes   = 200
	watchPace  = 20 * time.Millisecond // between two creates
	createPath = "/api/v1/namespaces/default/pods"
)

// BenchmarkWatchers reports how long after a create was sent its event has been
// read: by one watcher; by each of 200 with a connection each, like 200
// kubelets; and by each of 200 that share the connections of one client, like
// the informers of one program ("shared"). It also reports the ratio of 200 to
// one, for this server and for one that does nothing else (fanOut, in the
// benchmark's process).
func BenchmarkWatchers(b *testing.B) {
	etcd := harness.StartEtcd(b)
	s := startServer(b, "--etcd-servers="+etcd.URL)
	raw, err := dialRaw(s.address)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.close()
	eventually(b, func() error { return raw.post(createPath, []byte(pod("first"))) })
	bare := startFanOut(b, harness.StartEtcd(b).URL, len(read(b, s, httpClient(), createPath+"/first")))
	rawBare, err := dialRaw(bare.address)
	if err != nil {
		b.Fatal(err)
	}
	defer rawBare.close()
	for b.Loop() {
		one := latencies(b, s, raw, fmt.Sprintf("one-%d", b.N), 1, httpClient)
		before := cpu(b, s.cmd.Process.Pid)
		many := latencies(b, s, raw, fmt.Sprintf("many-%d", b.N), manyEyes, httpClient)
		b.ReportMetric(float64(cpu(b, s.cmd.Process.Pid)-before)/float64(len(many))/1000, "µs-cpu/event")
		program := httpClient()
		shared := latencies(b, s, raw, fmt.Sprintf("shared-%d", b.N), manyEyes, func() *http.Client { return program })
		program.CloseIdleConnections()
		b.ReportMetric(ms(median(shared)), "ms-p50-shared")
		b.ReportMetric(float64(median(shared))/float64(median(one)), "x-p50-shared")
		b.ReportMetric(float64(quantile(shared, 0.99))/float64(quantile(one, 0.99)), "x-p99-shared")
		bareOne := latencies(b, bare, rawBare, fmt.Sprintf("one-%d", b.N), 1, httpClient)
		bareMany := latencies(b, bare, rawBare, fmt.Sprintf("many-%d", b.N), manyEyes, httpClient)
		b.ReportMetric(float64(median(bareMany))/float64(median(bareOne)), "x-p50-bare")
		b.ReportMetric(float64(quantile(bareMany, 0.99))/float64(quantile(bareOne, 0.99)), "x-p99-bare")
		b.ReportMetric(ms(median(one)), "ms-p50-one")
		b.ReportMetric(ms(median(many)), "ms-p50-many")
		b.ReportMetric(float64(median(many))/float64(median(one)), "x-p50")
		b.ReportMetric(ms(quantile(one, 0.99)), "ms-p99-one")
		b.ReportMetric(ms(quantile(many, 0.99)), "ms-p99-many")
		b.ReportMetric(float64(quantile(many, 0.99))/float64(quantile(one, 0.99)), "x-p99")
	}
	b.ReportMetric(0, "ns/op")
}

// latencies creates pods while watchers watch, each by its own client, and
// returns for each watcher and event how long after the create it was read.
func latencies(b *testing.B, s *server, raw *rawClient, prefix string, watchers int, client func() *http.Client) []time.Duration {
	b.Helper()
	seen := make([][watched]time.Time, watchers)
	path := createPath + "?watch=1&resourceVersion=" + revision(b, s)
	var ready, done sync.WaitGroup
	ready.Add(watchers)
	for i := range watchers {
		done.Go(func() { look(b, s, client(), path, prefix, &ready, &seen[i]) })
	}
	ready.Wait()
	var sent [watched]time.Time
	pace := time.NewTicker(watchPace)
	defer pace.Stop()
	for i := range watched {
		body := []byte(pod(fmt.Sprintf("%s-%04d", prefix, i)))
		<-pace.C
		sent[i] = time.Now()
		if err := raw.post(createPath, body); err != nil {
			b.Fatal(err)
		}
	}
	done.Wait()
	var took []time.Duration
	for _, times := range seen {
		for i, at := range times {
			took = append(took, at.Sub(sent[i]))
		}
	}
	return took
}

// revision is the resource version of a list now: a watch can start from it.
func revision(b *testing.B, s *server) string {
	client := httpClient()
	defer client.CloseIdleConnections()
	answer, err := s.request(b.Context(), client, http.MethodGet, createPath+"?limit=1", "")
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil || list.ResourceVersion == "" {
		b.Fatal("list pods: ", answer.Status, err)
	}
	return list.ResourceVersion
}

// look reads events until it has seen all pods with prefix added.
func look(b *testing.B, s *server, client *http.Client, path, prefix string, ready *sync.WaitGroup, seen *[watched]time.Time) {
	defer client.CloseIdleConnections()
	answer, err := s.request(b.Context(), client, http.MethodGet, path, "")
	ready.Done()
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Error(answer, err)
		return
	}
	defer answer.Body.Close()
	lines := bufio.NewReaderSize(answer.Body, 64<<10)
	mark := []byte(`"name":"` + prefix + "-")
	for count := 0; count < watched; {
		line, err := lines.ReadSlice('\n')
		now := time.Now()
		if err != nil {
			b.Error("the watch ended: ", err)
			return
		}
		at := bytes.Index(line, mark)
		if at < 0 || !bytes.HasPrefix(line, []byte(`{"type":"ADDED"`)) {
			continue
		}
		var i int
		if _, err := fmt.Sscanf(string(line[at+len(mark):at+len(mark)+4]), "%d", &i); err != nil || i >= watched || !seen[i].IsZero() {
			b.Errorf("pod %d, %v", i, err)
			continue
		}
		seen[i] = now
		count++
	}
}
