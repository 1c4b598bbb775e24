package shutdown

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/shutdown/shutdowntest"
	"kctl/proto/core"
	"kctl/proto/eventually"
)

func TestPeriods(t *testing.T) {
	for _, c := range []struct {
		all, critical time.Duration
		byPriority    []Period
		want          []Period
		wrong         string
	}{
		{},
		{all: 30 * time.Second, critical: 10 * time.Second, want: []Period{{0, 20 * time.Second}, {2000000000, 10 * time.Second}}},
		{byPriority: []Period{{100, 5}, {-1, 7}}, want: []Period{{-1, 7}, {100, 5}}},
		{all: time.Second, critical: 2 * time.Second, wrong: "can't be longer"},
		{all: time.Millisecond, wrong: "one second at least"},
		{all: -time.Second, wrong: "one second at least"},
		{all: time.Second, byPriority: []Period{{1, 1}}, wrong: "can't both be set"},
		{byPriority: []Period{{1, 1}, {1, 2}}, wrong: "duplicated"},
		{byPriority: []Period{{1, -1}}, wrong: "negative"},
	} {
		got, err := Periods(c.all, c.critical, c.byPriority)
		if !slices.Equal(got, c.want) || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

func pod(name string, priority int32, grace int64) *core.Pod {
	p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Priority, p.Spec.TerminationGracePeriodSeconds = &priority, &grace
	return p
}

func TestShare(t *testing.T) {
	none := pod("none", 0, 1)
	none.Spec.Priority = nil
	groups := groupByPriority([]Period{{-10, 1}, {0, 1}, {100, 1}}, []*core.Pod{pod("below", -100, 1), none, pod("99", 99, 1), pod("100", 100, 1),
		pod("critical", 2000000000, 1)})
	var got []string
	for _, group := range groups {
		var names []string
		for _, p := range group {
			names = append(names, p.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{"below", "none 99", "100 critical"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// ending is a pod that was told to end.
type ending struct {
	name  string
	grace int64
	done  chan<- struct{}
}

// start runs a Manager until the test ends, and reports the pods that it ends.
func start(t *testing.T, address func() string, dir string, periods []Period, c clock.Clock, pods ...*core.Pod) (*Manager, chan ending) {
	t.Helper()
	ended := make(chan ending, len(pods)+1)
	told := make(chan struct{})
	close(told)
	m := New(Options{
		Periods:      periods,
		ConfigDir:    dir,
		Clock:        c,
		Logger:       zaptest.NewLogger(t),
		Changed:      func() {},
		StatusesSent: func() <-chan struct{} { return told },
		Connect:      func() (*dbus.Conn, error) { return dbus.Connect(address()) },
		Pods:         func() []*core.Pod { return pods },
		End:          func(pod *core.Pod, grace int64, done chan<- struct{}) { ended <- ending{pod.Name, grace, done} },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m, ended
}

var periods = []Period{{0, 20 * time.Second}, {2000000000, 10 * time.Second}}

func TestAShutdownWaitsForPods(t *testing.T) {
	address, _ := shutdowntest.StartBus(t)
	l := shutdowntest.StartLogind(t, address, time.Minute)
	m, ended := start(t, func() string { return address }, l.Dir, periods, clock.RealClock{},
		pod("critical", 2000001000, 300), pod("patient", 5, 300), pod("quick", 5, 3))
	l.Await("a lock", true)
	if m.ShuttingDown() {
		t.Error("shutting down before anybody said so")
	}
	l.Announce(true)
	first, second := <-ended, <-ended
	if first.name != "patient" || first.grace != 20 || second.name != "quick" || second.grace != 3 {
		t.Errorf("first to end: %+v, %+v", first, second)
	}
	if !m.ShuttingDown() || !l.Held() {
		t.Errorf("shutting down: %t; lock held: %t", m.ShuttingDown(), l.Held())
	}
	close(second.done)
	select {
	case early := <-ended:
		t.Errorf("%s ends beside others that are less important", early.name)
	default:
	}
	close(first.done)
	last := <-ended
	if last.name != "critical" || last.grace != 10 || !l.Held() {
		t.Errorf("last to end: %+v; lock held: %t", last, l.Held())
	}
	close(last.done)
	l.Await("the lock to be given back", false)

	l.Announce(false)
	l.Await("a lock again", true)
	if m.ShuttingDown() {
		t.Error("the shutdown was called off")
	}
}

func TestAShutdownDoesNotWaitForever(t *testing.T) {
	address, _ := shutdowntest.StartBus(t)
	l := shutdowntest.StartLogind(t, address, time.Minute)
	fake := clocktesting.NewFakeClock(time.Now())
	m, ended := start(t, func() string { return address }, l.Dir, periods, fake, pod("stubborn", 5, 300), pod("critical", 2000000000, 300))
	l.Await("a lock", true)
	told := make(chan (<-chan struct{}))
	m.StatusesSent = func() <-chan struct{} { return <-told }
	l.Announce(true)
	for _, want := range []string{"stubborn", "critical"} {
		if got := <-ended; got.name != want {
			t.Fatalf("%s ends, want %s", got.name, want)
		}
		eventually.Holds(t, "the group's time to run", fake.HasWaiters)
		fake.Step(20 * time.Second)
	}
	told <- nil // from an API server that is gone
	eventually.Holds(t, "somebody to wait for it", fake.HasWaiters)
	if !l.Held() {
		t.Error("the lock was released before the pods' ends were reported")
	}
	fake.Step(tellWithin)
	l.Await("the lock to be given back", false)
}

func TestLogindIsMadeToWaitLongEnough(t *testing.T) {
	address, _ := shutdowntest.StartBus(t)
	l := shutdowntest.StartLogind(t, address, 5*time.Second)
	start(t, func() string { return address }, l.Dir, periods, clock.RealClock{})
	l.Await("a lock", true)
	bus, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if delay, err := (logind{bus}).inhibitDelay(t.Context()); err != nil || delay != 30*time.Second+tellWithin {
		t.Errorf("it waits %v, %v", delay, err)
	}
	l.Deaf = true
	m := New(Options{
		Periods:   []Period{{0, time.Minute}},
		ConfigDir: l.Dir,
		Clock:     clock.RealClock{},
		Logger:    zaptest.NewLogger(t),
		Connect:   func() (*dbus.Conn, error) { return dbus.Connect(address) },
	})
	if _, err := m.session(t.Context()); err == nil || !strings.Contains(err.Error(), "InhibitDelayMaxSec=35s, less than the 1m5s") {
		t.Errorf("error %v", err)
	}
}

func TestABusThatIsGoneIsConnectedToAgain(t *testing.T) {
	var address atomic.Value
	address.Store("unix:path=/no/such/bus")
	m, _ := start(t, func() string { return address.Load().(string) }, t.TempDir(), periods, clock.RealClock{})
	bus, stop := shutdowntest.StartBus(t)
	l := shutdowntest.StartLogind(t, bus, time.Minute)
	address.Store(bus)
	l.Await("a lock", true)
	if m.ShuttingDown() {
		t.Error("shutting down before anybody said so")
	}
	l.Announce(true) // and nobody is told that it is called off
	eventually.Holds(t, "the shutdown to be known", m.ShuttingDown)
	next, _ := shutdowntest.StartBus(t)
	again := shutdowntest.StartLogind(t, next, time.Minute)
	address.Store(next)
	stop()
	again.Await("a lock from the next logind", true)
	eventually.Holds(t, "the shutdown to be known as called off", func() bool { return !m.ShuttingDown() })
}
