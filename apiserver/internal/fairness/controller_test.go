package fairness

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
)

// world is the stored configuration, and a Controller that follows it. It runs
// in a synctest bubble.
type world struct {
	*Controller
	t        *testing.T
	stored   Configuration
	changed  chan struct{}
	mu       sync.Mutex
	dangling map[string]bool
	registry *prometheus.Registry
}

func start(t *testing.T, seats int, stored Configuration) *world {
	t.Helper()
	w := &world{t: t, stored: stored, changed: make(chan struct{}, 1), dangling: map[string]bool{}, registry: prometheus.NewRegistry()}
	w.Controller = New(Options{
		Seats: seats, Builtin: builtin(), Changed: w.changed, Read: func() Configuration { return w.stored },
		Dangling: func(_ context.Context, s *flowcontrolv1.FlowSchema, missing bool) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dangling[s.Name] = missing
			return nil
		},
		Metrics: w.registry, Clock: clock.RealClock{}, Logger: zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx) // it ends with ctx
	}()
	t.Cleanup(func() { cancel(); <-done })
	w.apply(stored)
	return w
}

// apply puts a configuration in force.
func (w *world) apply(stored Configuration) {
	w.stored = stored
	w.changed <- struct{}{}
	synctest.Wait()
}

func (w *world) ticket(name string) *Ticket {
	ticket := w.Find(user(name), resource("get", "", "pods", "default"))
	return &ticket
}

func levelOf(name string, shares int32, queuing *flowcontrolv1.QueuingConfiguration) *flowcontrolv1.PriorityLevelConfiguration {
	response := flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	if queuing != nil {
		response = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: queuing}
	}
	return &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: new(shares), BorrowingLimitPercent: new(int32(0)), LimitResponse: response,
		},
	}}
}

// only is a configuration of one level to which all requests go.
func only(level *flowcontrolv1.PriorityLevelConfiguration) Configuration {
	s := schemaOf(50, level.Name, flowcontrolv1.PolicyRulesWithSubjects{
		Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "*"}}},
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
			Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
		}},
	})
	s.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType}
	return Configuration{Schemas: []*flowcontrolv1.FlowSchema{s}, Levels: []*flowcontrolv1.PriorityLevelConfiguration{level}}
}

var oneQueue = &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: 2}

// enter enters in the background; the channel reports whether that worked.
func (w *world) enter(ctx context.Context, patience time.Duration) (*Ticket, <-chan bool) {
	ticket, entered := w.ticket("jane"), make(chan bool, 1)
	go func() { entered <- ticket.Enter(ctx, 1, patience) }()
	synctest.Wait()
	return ticket, entered
}

// TestWaiting: a waiting request gets a seat when there is one, or gives up
// when its time is over or its client has gone, and leaves nothing behind. (A
// leaked goroutine would fail the bubble.)
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 1, only(levelOf("l", 100, oneQueue)))
		first := w.ticket("jane")
		if !first.Enter(t.Context(), 1, time.Minute) {
			t.Fatal("the first was refused")
		}
		asking := request.With(t.Context(), &request.Arrival{})
		second, entered := w.enter(asking, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		_, gone := w.enter(ctx, time.Minute)
		if _, full := w.enter(t.Context(), time.Minute); <-full {
			t.Error("a full queue took one more")
		}
		w.gauges("with one that runs and two that wait", 1, 1, 2, 2)
		cancel()
		if <-gone {
			t.Error("a client that has gone was admitted")
		}
		began := time.Now()
		if _, late := w.enter(t.Context(), 3*time.Second); <-late || time.Since(began) != 3*time.Second {
			t.Errorf("a request that waits 3s gave up after %v", time.Since(began))
		}
		first.Leave()
		if !<-entered {
			t.Error("the waiting request was not admitted")
		}
		if waited := request.WaitedFrom(asking); waited != 3*time.Second {
			t.Errorf("a request that stood in the queue for 3s waited for %v", waited)
		}
		second.Leave()
		if q := w.queues("l"); q.inUse+q.waiting+q.running != 0 {
			t.Errorf("left behind: %+v", q)
		}
		w.gauges("when all have left", 0, 0, 0, 0)
		for name, want := range map[string]struct {
			count uint64
			sum   float64
		}{
			`request_wait_duration_seconds{execute="true"}`:  {2, 3},
			`request_wait_duration_seconds{execute="false"}`: {3, 3}, // one of them was refused at once, and one had gone at once
			`request_execution_seconds{type="regular"}`:      {2, 3},
			"work_estimated_seats":                           {5, 5},
			"request_queue_length_after_enqueue":             {4, 6}, // one that ran at once; one, two, and after the second has gone, two again
		} {
			if count, sum := w.histogram(name); count != want.count || sum != want.sum {
				t.Errorf("%s counts %d with the sum %v, want %d, %v", name, count, sum, want.count, want.sum)
			}
		}
		w.metrics(`
			# HELP apiserver_flowcontrol_dispatched_requests_total Number of requests executed by API Priority and Fairness subsystem
			# TYPE apiserver_flowcontrol_dispatched_requests_total counter
			apiserver_flowcontrol_dispatched_requests_total{flow_schema="own",priority_level="l"} 2
			# HELP apiserver_flowcontrol_rejected_requests_total Number of requests rejected by API Priority and Fairness subsystem
			# TYPE apiserver_flowcontrol_rejected_requests_total counter
			apiserver_flowcontrol_rejected_requests_total{flow_schema="own",priority_level="l",reason="cancelled"} 1
			apiserver_flowcontrol_rejected_requests_total{flow_schema="own",priority_level="l",reason="queue-full"} 1
			apiserver_flowcontrol_rejected_requests_total{flow_schema="own",priority_level="l",reason="time-out"} 1
			`, "apiserver_flowcontrol_dispatched_requests_total", "apiserver_flowcontrol_rejected_requests_total")
	})
}

func (w *world) metrics(want string, names ...string) {
	w.t.Helper()
	if err := testutil.GatherAndCompare(w.registry, strings.NewReader(want), names...); err != nil {
		w.t.Error(err)
	}
}

// gauges wants so many requests, and their seats, to run and to wait.
func (w *world) gauges(when string, running, runningSeats, waiting, waitingSeats float64) {
	w.t.Helper()
	m := w.Controller.metrics
	for name, c := range map[string]struct {
		got  *prometheus.GaugeVec
		want float64
	}{
		"current_executing_requests": {m.running, running}, "current_executing_seats": {m.runningSeats, runningSeats},
		"current_inqueue_requests": {m.waiting, waiting}, "current_inqueue_seats": {m.waitingSeats, waitingSeats},
	} {
		if got := testutil.ToFloat64(c.got.WithLabelValues("own", "l")); got != c.want {
			w.t.Errorf("%s: %s is %v, want %v", when, name, got, c.want)
		}
	}
}

// histogram is the number of observations of the schema "own", and their sum. The name may have a
// label: name{label="value"}.
func (w *world) histogram(name string) (count uint64, sum float64) {
	w.t.Helper()
	name, label, _ := strings.Cut(name, "{")
	key, value, _ := strings.Cut(strings.TrimSuffix(label, "}"), "=")
	for _, metric := range w.metricsOf(name) {
		labels := labelsOf(metric)
		if labels["flow_schema"] == "own" && strconv.Quote(labels[key]) == cmp.Or(value, `""`) {
			return metric.GetHistogram().GetSampleCount(), metric.GetHistogram().GetSampleSum()
		}
	}
	w.t.Fatalf("there is no %s", name)
	return 0, 0
}

// TestChanges: a changed configuration applies at once, to waiting requests,
// too.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 10, only(levelOf("l", 0, oneQueue)))
		ticket, entered := w.enter(t.Context(), time.Minute)
		w.apply(only(levelOf("l", 5, oneQueue)))
		if !<-entered {
			t.Fatal("the seats that came did not help")
		}
		w.apply(only(levelOf("l", 6, oneQueue)))
		w.gauges("after a change of what stays", 1, 1, 0, 0)
		// It holds a seat of a level that no longer exists, and can still leave.
		w.apply(Configuration{Schemas: w.stored.Schemas})
		if !w.dangling["own"] {
			t.Error("the schema has no condition Dangling")
		}
		if got := w.ticket("jane").schema.name; got != "catch-all" {
			t.Errorf("a dangling schema must not apply, %s does", got)
		}
		ticket.Leave()
		if n := testutil.CollectAndCount(w.Controller.metrics.dispatched); n != 0 {
			t.Errorf("%d counters of what is gone", n)
		}
		w.apply(only(levelOf("l", 5, nil)))
		if w.dangling["own"] || w.ticket("jane").schema.name != "own" {
			t.Error("the schema still dangles")
		}
	})
}

// TestBorrowing: a level that needs more seats than its own borrows from those
// that need fewer, at the next adjustment, and gives them back when they need
// more.
func TestBorrowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := levelOf("busy", 50, &flowcontrolv1.QueuingConfiguration{Queues: 8, HandSize: 2, QueueLengthLimit: 100})
		busy.Spec.Limited.BorrowingLimitPercent = nil
		idle := levelOf("idle", 50, nil)
		idle.Spec.Limited.LendablePercent = new(int32(50))
		stored := only(busy)
		stored.Levels = append(stored.Levels, idle)
		// Of 21 seats, 10 are nominally each level's, and one is catch-all's. The
		// five that can be lent are shared out as long as nobody asks for more.
		w := start(t, 21, stored)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 30 {
			waiting.Go(func() {
				if ticket := w.ticket("jane"); ticket.Enter(ctx, 1, time.Hour) {
					<-ctx.Done()
					ticket.Leave()
				}
			})
		}
		synctest.Wait()
		before := w.queues("busy").running
		time.Sleep(2 * adjustEvery)
		synctest.Wait()
		if after := w.queues("busy").running; before != 13 || after != 15 {
			t.Errorf("%d requests ran, and %d with what the other lends", before, after)
		}
		cancel()
		waiting.Wait()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := w.queues("idle").limit; got != 7 {
			t.Errorf("the other has %d seats, want 7", got)
		}
	})
}

func (w *world) queues(name string) queues {
	l := w.levels[name]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queues
}

// BenchmarkUncontended is the cost of a request that finds a free seat:
// classification by every cluster's flow schemas, entering and leaving.
func BenchmarkUncontended(b *testing.B) {
	c := newController()
	jane, info := user("jane", "dev"), resource("get", "", "pods", "default")
	b.ReportAllocs()
	for b.Loop() {
		ticket := c.Find(jane, info)
		if !ticket.Enter(b.Context(), 1, time.Second) {
			b.Fatal("refused")
		}
		ticket.Leave()
	}
}

// TestPages: the pages show what the levels did, who waits in which queue, and
// who runs, in upstream's layout.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 1, only(levelOf("l", 100, oneQueue)))
		page := func(name string) map[string]string {
			var out strings.Builder
			if err := Pages[name](w.Controller, &out, true); err != nil {
				t.Fatal(err)
			}
			rows := map[string]string{}
			for line := range strings.Lines(out.String()) {
				first, rest, _ := strings.Cut(line, ",")
				rows[first] += strings.ReplaceAll(strings.ReplaceAll(rest, " ", ""), "\n", ";")
			}
			return rows
		}
		first := w.ticket("jane")
		if !first.Enter(t.Context(), 1, time.Minute) {
			t.Fatal("the first was refused")
		}
		_, second := w.enter(t.Context(), time.Minute)
		_, third := w.enter(t.Context(), time.Second)
		if _, fourth := w.enter(t.Context(), time.Minute); <-fourth {
			t.Error("the queue has no end")
		}
		arrived := first.arrived.UTC().Format(time.RFC3339Nano)
		about := "jane,get,/of/no/matter,default,,,pods,;"
		for _, want := range []struct{ page, row, of string }{
			{"dump_priority_levels",
				"ActiveQueues,IsIdle,IsQuiescing,WaitingRequests,ExecutingRequests,DispatchedRequests,RejectedRequests,TimedoutRequests,CancelledRequests;",
				"PriorityLevelName"},
			{"dump_priority_levels", "1,false,false,2,1,1,1,0,0;", "l"},
			{"dump_queues", "0,2,1,1,0.00500000ss,2,2,0.01000000ss;", "l"},
			{"dump_requests", "own,0,-1,jane," + arrived + ",1,0,0s," + arrived + "," + about +
				"own,0,0,jane," + arrived + ",1,0,0s,0001-01-01T00:00:00Z," + about + "own,0,1,jane," + arrived + ",1,0,0s,0001-01-01T00:00:00Z," + about, "l"},
		} {
			if got := page(want.page)[want.of]; got != want.row {
				t.Errorf("%s:\n got %s\nwant %s", want.page, got, want.row)
			}
		}
		if <-third {
			t.Error("the third had no time")
		}
		first.Leave()
		if !<-second {
			t.Error("the second was refused")
		}
		if got, want := page("dump_priority_levels")["l"], "0,false,false,0,1,2,1,1,0;"; got != want {
			t.Errorf("later: got %s, want %s", got, want)
		}
	})
}
