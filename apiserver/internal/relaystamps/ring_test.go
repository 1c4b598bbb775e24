package relaystamps

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/proto/relay"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func stamp(hop relay.Hop, after time.Duration) relay.Stamp {
	return relay.Stamp{Hop: hop, At: start.Add(after)}
}

func TestTraceIsInOrderAndKeepsTheFirst(t *testing.T) {
	r := NewRing(2)
	r.Add("shop", "web", "1", stamp(relay.ServerStored, 3), stamp(relay.ServerReceived, 1))
	r.Add("shop", "web", "1", stamp(relay.ServerStored, 9), stamp(relay.SchedulerPopped, 5))
	got, ok := r.Trace("shop", "web")
	if !ok || got.UID != "1" || len(got.Stamps) != 3 || got.Stamps[0].Hop != relay.ServerReceived || got.Stamps[1] != stamp(relay.ServerStored, 3) {
		t.Errorf("%+v", got)
	}
}

// The watch may have a pod before the answer to its writer: it is stored by then.
func TestNothingIsWatchedBeforeItIsStored(t *testing.T) {
	r := NewRing(1)
	r.Add("shop", "web", "1", stamp(relay.ServerWatched, 7))
	r.Add("shop", "web", "1", stamp(relay.ServerAdmitted, 5), stamp(relay.ServerStored, 9))
	got, _ := r.Trace("shop", "web")
	if want := []relay.Stamp{stamp(relay.ServerAdmitted, 5), stamp(relay.ServerStored, 7), stamp(relay.ServerWatched, 7)}; !slices.Equal(got.Stamps, want) {
		t.Errorf("%v, want %v", got.Stamps, want)
	}
}

func TestAnotherPodOfTheNameStartsAnew(t *testing.T) {
	r := NewRing(2)
	r.Add("shop", "web", "1", stamp(relay.ServerReceived, 1), stamp(relay.ServerStored, 2))
	if got, _ := r.Trace("shop", "web"); len(got.Stamps) != 2 {
		t.Errorf("%+v", got)
	}
	r.Add("shop", "web", "2", stamp(relay.ServerWatched, 3))
	if got, _ := r.Trace("shop", "web"); got.UID != "2" || len(got.Stamps) != 1 {
		t.Errorf("%+v", got)
	}
}

// The watch lags behind the answers to those who write: it may tell of the end of a pod after its
// successor has been created.
func TestALateEndIsNotTheNextPods(t *testing.T) {
	r := NewRing(2)
	r.Add("shop", "web", "1", stamp(relay.ServerStored, 1))
	r.Add("shop", "web", "2", stamp(relay.ServerReceived, 3), stamp(relay.ServerStored, 4))
	r.Add("shop", "web", "1", stamp(relay.ServerRemoved, 5))
	r.Add("shop", "web", "2", stamp(relay.ServerWatched, 6))
	if got, _ := r.Trace("shop", "web"); got.UID != "2" || len(got.Stamps) != 3 {
		t.Errorf("%+v", got)
	}
	r.Add("shop", "old", "3", stamp(relay.ServerRemoved, 7)) // stored before this server started
	if got, _ := r.Trace("shop", "old"); got.UID != "3" || len(got.Stamps) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestRingIsBounded(t *testing.T) {
	r := NewRing(3)
	for i := range 10 {
		r.Add("shop", fmt.Sprint(i), "u", stamp(relay.ServerReceived, 0))
	}
	if len(r.traces) != 3 || len(r.order) != 3 {
		t.Errorf("%d traces, %d in order", len(r.traces), len(r.order))
	}
	for i := range 10 {
		if _, ok := r.Trace("shop", fmt.Sprint(i)); ok != (i >= 7) {
			t.Errorf("%d: %v", i, ok)
		}
	}
	for i := range 2 * relay.MaxStamps {
		r.Add("shop", "9", "u", stamp(relay.KubeletStarted.Of(fmt.Sprint(i)), 0))
	}
	if got, _ := r.Trace("shop", "9"); len(got.Stamps) != 1+relay.MaxStamps {
		t.Errorf("%d stamps", len(got.Stamps))
	}
}

func ended(container string, number int32, after time.Duration) relay.Restart {
	return relay.Restart{Container: container, Number: number, Cause: relay.CauseExit, Reason: "Error", Ended: start.Add(after)}
}

func TestRestartsAreOfOnePod(t *testing.T) {
	r := NewRing(2)
	r.Add("shop", "web", "1", stamp(relay.KubeletReady, 1))
	r.AddRestarts("shop", "web", "1", ended("web", 2, 9), ended("web", 1, 5))
	got, _ := r.Trace("shop", "web")
	if want := []relay.Restart{ended("web", 1, 5), ended("web", 2, 9)}; !slices.Equal(got.Restarts, want) || len(got.Stamps) != 1 {
		t.Errorf("%+v", got)
	}
	r.Add("shop", "web", "2", stamp(relay.ServerStored, 20))
	if got, _ := r.Trace("shop", "web"); len(got.Restarts) > 0 {
		t.Errorf("the new pod has the old one's restarts: %+v", got)
	}
	r.AddRestarts("shop", "web", "3", ended("web", 7, 30)) // of whose start this server does not know
	if got, _ := r.Trace("shop", "web"); got.UID != "3" || len(got.Restarts) != 1 || len(got.Stamps) > 0 {
		t.Errorf("%+v", got)
	}
}

// What the ring keeps of restarts has a bound: as many pods as it has room for, all of whose
// containers have long names and crash for ever, cost less than 32 MiB.
func TestRestartsCostABoundedAmount(t *testing.T) {
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	r := NewRing(Capacity)
	before := used()
	for n := int32(1); n <= 3*relay.MaxRestartsOfContainer; n++ {
		var told []relay.Restart
		for c := range relay.MaxRestarts / relay.MaxRestartsOfContainer {
			told = append(told, ended(strings.Repeat("c", 62)+fmt.Sprint(c), n, time.Duration(n)))
		}
		for pod := range Capacity {
			sent, err := relay.DecodeRestarts(relay.EncodeRestarts(told))
			if err != nil {
				t.Fatal(err)
			}
			r.AddRestarts("shop", fmt.Sprint(pod), "u", sent...)
		}
	}
	got, _ := r.Trace("shop", "0")
	if len(got.Restarts) != relay.MaxRestarts {
		t.Errorf("%d restarts are kept", len(got.Restarts))
	}
	if cost := used() - before; cost > 32<<20 {
		t.Errorf("the restarts of %d pods cost %d bytes", Capacity, cost)
	} else {
		t.Logf("the restarts of %d pods cost %d bytes", Capacity, cost)
	}
	runtime.KeepAlive(r)
}
