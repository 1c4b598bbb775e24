package podruntime

import (
	"testing"
	"time"

	"kctl/kubelet/internal/runtimestate"
)

// A back-off lasts as long as it says, whatever the machine's clock was set to
// between the end that the runtime recorded and now.
func TestBackOffsOutliveClocksThatAreSet(t *testing.T) {
	const delay = 10 * time.Second
	pod := podWith("a")
	for _, c := range []struct {
		name     string
		recorded time.Duration // how long before the first look, by the runtime's record
		first    string
		later    string // nine seconds after the first look
	}{
		{"the clock goes right", time.Second, "start(a+9s)", "start(a)"},
		{"it was set back by a day", -24 * time.Hour, "start(a+10s)", "start(a+1s)"},
		{"it was set forward by a day", 24 * time.Hour, "start(a)", "start(a)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, key := newEnds(time.Minute), containerKey{pod: pod.UID, name: "a"}
			look := func(now time.Time) string {
				status := has("box a=1")
				last := status.Container("a")
				last.FinishedAt = epoch.Add(-c.recorded)
				return summary(computePodActions(pod, status, facts{
					now: now, delays: map[string]time.Duration{"a": delay}, ended: map[string]time.Time{"a": e.of(key, last, now)},
				}))
			}
			if got := look(epoch); got != c.first {
				t.Errorf("at first %s, want %s", got, c.first)
			}
			if got := look(epoch.Add(9 * time.Second)); got != c.later {
				t.Errorf("later %s, want %s", got, c.later)
			}
		})
	}
}

func TestEndsAreForgotten(t *testing.T) {
	e := newEnds(time.Minute)
	last := &runtimestate.ContainerStatus{ID: runtimestate.ContainerID{Type: "test", ID: "1"}, FinishedAt: epoch}
	e.of(containerKey{name: "a"}, last, epoch)
	e.of(containerKey{name: "b"}, last, epoch.Add(time.Hour))
	if len(e.seen) != 2 { // b's own sweep came before it
		e.of(containerKey{name: "c"}, last, epoch.Add(2*time.Hour))
	}
	if _, kept := e.seen[containerKey{name: "a"}]; kept {
		t.Error("an end of an hour ago is still known")
	}
}
