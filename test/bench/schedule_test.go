package bench_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kctl/proto/relay"
	"kctl/test/harness"
)

const (
	manyNodes   = 5000
	backlog     = 10_000
	binders     = 64 // Bindings in flight, as many as the scheduler has
	steadyPods  = 500
	steadyPace  = 10 * time.Millisecond // between two creates
	nodesPath   = "/api/v1/nodes"
	nobody      = "nobody" // the scheduler name of the pods that the floor binds
	schedulable = "default-scheduler"
)

// BenchmarkScheduling has a scheduler bind a backlog of pods to 5,000 nodes
// through the API server. The floor is the same number of Bindings, posted by a
// client that does next to nothing, without a scheduler. The number must be the
// same because a server that works for seconds collects garbage, and its etcd
// writes its file, which a short run would not show; and the floor's server
// must have done the same work before. The floor is measured before and after,
// because the machine's speed may change meanwhile. For pods that come at a
// steady pace, the benchmark reports how long each waited from being stored
// until its Binding was sent.
func BenchmarkScheduling(b *testing.B) {
	for b.Loop() {
		floor := bindBacklog(b)
		bound := scheduleBacklog(b)
		floor = together(floor, bindBacklog(b))
		b.ReportMetric(bound, "pods/s")
		b.ReportMetric(floor, "bindings/s-alone")
		b.ReportMetric(bound/floor, "x-floor")
	}
	b.ReportMetric(0, "ns/op")
}

// together is the rate of two runs of the same number of pods.
func together(first, second float64) float64 { return 2 / (1/first + 1/second) }

// scheduleBacklog is how many pods of a backlog a scheduler binds per second.
func scheduleBacklog(b *testing.B) float64 {
	b.Helper()
	f := startFleet(b)
	defer f.stop()
	f.fill(schedulable)
	costs := f.costs()
	scheduler := startScheduler(b, f.server)
	costs.of["scheduler"] = scheduler.cmd.Process.Pid
	bound := scheduler.drain(&costs)
	b.ReportMetric(float64(memory(b, scheduler.cmd.Process.Pid, "VmRSS"))/(1<<20), "MiB-scheduler")
	b.ReportMetric(float64(memory(b, f.server.cmd.Process.Pid, "VmRSS"))/(1<<20), "MiB-apiserver")
	waits := steady(b, f.server, f.raw)
	b.ReportMetric(ms(median(waits)), "ms-p50-steady")
	b.ReportMetric(ms(quantile(waits, 0.99)), "ms-p99-steady")
	scheduler.stop()
	return bound
}

// bindBacklog is how many pods of a backlog per second a client can bind that
// need not look for nodes.
func bindBacklog(b *testing.B) float64 {
	b.Helper()
	f := startFleet(b)
	defer f.stop()
	f.fill(nobody)
	costs := f.costs()
	costs.begin()
	began := time.Now()
	each(b, backlog, func(i int) error {
		name := backlogName(i)
		return f.raw.post(createPath+"/"+name+"/binding", []byte(binding(name, i%manyNodes)))
	})
	rate := backlog / time.Since(began).Seconds()
	costs.mark()
	costs.report("binding", backlog)
	return rate
}

// fleet is an API server, its etcd, and many nodes that exist only as objects.
type fleet struct {
	b      *testing.B
	etcd   *harness.Etcd
	server *server
	raw    *rawClient
}

func startFleet(b *testing.B) *fleet {
	b.Helper()
	f := &fleet{b: b, etcd: harness.StartEtcd(b)}
	// Nobody renews the nodes' leases, so nobody may check them.
	f.server = startServer(b, "--etcd-servers="+f.etcd.URL, "--controllers=*,-nodelifecycle", "--disable-admission-plugins=TaintNodesByCondition")
	raw, err := dialRaw(f.server.address)
	if err != nil {
		b.Fatal(err)
	}
	f.raw = raw
	eventually(b, func() error { return raw.post(createPath, []byte(podOf("first", nobody))) })
	each(b, manyNodes, func(i int) error { return raw.post(nodesPath, []byte(node(i))) })
	return f
}

func (f *fleet) stop() {
	f.raw.close()
	f.server.stop()
	f.etcd.Stop()
}

// fill creates a backlog for a scheduler.
func (f *fleet) fill(scheduler string) {
	f.b.Helper()
	each(f.b, backlog, func(i int) error { return f.raw.post(createPath, []byte(podOf(backlogName(i), scheduler))) })
}

func backlogName(i int) string { return fmt.Sprint("backlog-", i) }

// costs is the account of the fleet's programs.
func (f *fleet) costs() account {
	return account{b: f.b, of: map[string]int{"apiserver": f.server.cmd.Process.Pid, "etcd": f.etcd.PID()}}
}

// account is the CPU time of processes: unlike a rate, it hardly depends on
// what else the machine does.
type account struct {
	b             *testing.B
	of            map[string]int // PIDs by program
	before, after map[string]time.Duration
}

func (a *account) begin() { a.before = a.spent() }

// mark ends the account now. A later call moves the end.
func (a *account) mark() { a.after = a.spent() }

func (a *account) spent() map[string]time.Duration {
	spent := map[string]time.Duration{}
	for name, pid := range a.of {
		spent[name] = cpu(a.b, pid)
	}
	return spent
}

// report reports how much CPU time each process used for each of n things,
// until mark.
func (a *account) report(thing string, n int) {
	for name := range a.of {
		a.b.ReportMetric(float64((a.after[name]-a.before[name]).Microseconds())/float64(n), "cpu-µs/"+thing+"-"+name)
	}
}

// each calls do n times, as many at a time as a scheduler has Bindings in
// flight.
func each(b *testing.B, n int, do func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range binders {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// node is a ready node in one of ten zones.
func node(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%05d","labels":{"kubernetes.io/hostname":"node-%05d",`+
		`"kubernetes.io/os":"linux","topology.kubernetes.io/zone":"zone-%d"}},"status":{"capacity":{"cpu":"32","memory":"256Gi","pods":"110"},`+
		`"allocatable":{"cpu":"32","memory":"256Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`, i, i, i%10)
}

func podOf(name, scheduler string) string {
	return strings.Replace(pod(name), `"spec":{`, `"spec":{"schedulerName":"`+scheduler+`",`, 1)
}

func binding(pod string, node int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"apiVersion":"v1","kind":"Node","name":"node-%05d"}}`, pod, node)
}

// steady creates pods at a steady pace, and returns for each how long after
// being stored its Binding left the scheduler, by the relay's stamps.
func steady(b *testing.B, s *server, raw *rawClient) []time.Duration {
	b.Helper()
	name := func(i int) string { return fmt.Sprint("steady-", i) }
	pace := time.NewTicker(steadyPace)
	defer pace.Stop()
	for i := range steadyPods {
		<-pace.C
		if err := raw.post(createPath, []byte(podOf(name(i), schedulable))); err != nil {
			b.Fatal(err)
		}
	}
	client := httpClient()
	defer client.CloseIdleConnections()
	var waits []time.Duration
	for i := range steadyPods {
		eventually(b, func() error {
			at, err := s.stamps(client, name(i))
			if err == nil {
				waits = append(waits, at[relay.SchedulerBinding].Sub(at[relay.ServerStored]))
			}
			return err
		})
	}
	return waits
}

// stamps are the relay's stamps on a bound pod.
func (s *server) stamps(client *http.Client, pod string) (map[relay.Hop]time.Time, error) {
	answer, err := s.request(s.b.Context(), client, http.MethodGet, relay.Path("default", pod), "")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var trace relay.Trace
	if err := json.NewDecoder(answer.Body).Decode(&trace); err != nil {
		return nil, err
	}
	at := map[relay.Hop]time.Time{}
	for _, stamp := range trace.Stamps {
		at[stamp.Hop] = stamp.At
	}
	for _, hop := range []relay.Hop{relay.ServerStored, relay.SchedulerBinding} {
		if at[hop].IsZero() {
			return nil, fmt.Errorf("pod %s has no %s yet", pod, hop)
		}
	}
	return at, nil
}

// scheduler is a scheduler in a process of its own.
type scheduler struct {
	b      *testing.B
	cmd    *exec.Cmd
	client *http.Client
	port   int
}

func startScheduler(b *testing.B, server *server) *scheduler {
	b.Helper()
	kubeconfig := filepath.Join(server.dir, "scheduler.kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
		`"clusters":[{"name":"c","cluster":{"server":"https://%s","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":%q}}]}`,
		server.address, masterToken)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	s := &scheduler{b: b, client: httpClient(), port: harness.FreePort(b)}
	s.cmd = exec.Command(filepath.Join(harness.Bin(b), "scheduler"), "--kubeconfig="+kubeconfig, "--leader-elect=false", fmt.Sprint("--secure-port=", s.port),
		"--authorization-always-allow-paths=/metrics")
	log, err := os.Create(filepath.Join(server.dir, "scheduler.log"))
	if err != nil {
		b.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_ = log.Close()
	b.Cleanup(s.stop)
	return s
}

func (s *scheduler) stop() {
	end(s.b, "scheduler", s.cmd)
	s.cmd = nil
	s.client.CloseIdleConnections()
}

// drain waits until the backlog is bound, and returns the rate in pods per
// second, between the first and the last time that it saw a part of the pods
// bound. It looks rarely, because a look costs the scheduler time.
func (s *scheduler) drain(costs *account) float64 {
	s.b.Helper()
	const pace = 500 * time.Millisecond
	deadline := time.Now().Add(5 * time.Minute)
	var began, last time.Time
	first, bound := 0, 0
	for n := s.scheduled(); n < backlog; n = s.scheduled() {
		switch now := time.Now(); {
		case now.After(deadline):
			s.b.Fatal("the backlog is not bound")
		case n == 0:
		case began.IsZero():
			costs.begin()
			began, first = now, n
		default:
			last, bound = now, n
			costs.mark()
		}
		time.Sleep(pace)
	}
	if last.IsZero() {
		s.b.Fatal("the backlog is bound before it could be seen")
	}
	costs.report("pod", bound-first)
	return float64(bound-first) / last.Sub(began).Seconds()
}

// scheduled is how many pods the scheduler's metrics say that it has bound.
func (s *scheduler) scheduled() int {
	answer, err := s.client.Get(fmt.Sprintf("https://127.0.0.1:%d/metrics", s.port))
	if err != nil {
		return 0 // not up yet
	}
	defer func() {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "scheduler_schedule_attempts_total{") && strings.Contains(lines.Text(), `result="scheduled"`) {
			var n float64
			if _, err := fmt.Sscan(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], &n); err == nil {
				return int(n)
			}
		}
	}
	return 0
}
