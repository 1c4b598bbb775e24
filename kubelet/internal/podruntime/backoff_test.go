package podruntime

import (
	"testing"
	"time"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A back-off lasts as long as it should, whatever the machine's clock was set
// to between the recorded end and now.
func TestBackOffsOutliveClocksThatAreSet(t *testing.T) {
	const delay = 10 * time.Second
	pod := newPod("web", shell("a", forever))
	for _, c := range []struct {
		name     string
		recorded time.Duration // time from the recorded end to the first look
		first    time.Duration // back-off at the first look
		later    time.Duration // back-off nine seconds later
	}{
		{"the clock goes right", time.Second, 9 * time.Second, 0},
		{"it was set back by a day", -24 * time.Hour, 10 * time.Second, time.Second},
		{"it was set forward by a day", 24 * time.Hour, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, key := newEnds(time.Minute), containerKey{pod: pod.UID, name: "a"}
			look := func(now time.Time) time.Duration {
				last := &runtimestate.ContainerStatus{Name: "a", State: runtimestate.StateExited, ExitCode: 1, FinishedAt: start.Add(-c.recorded)}
				status := &runtimestate.PodStatus{
					Sandboxes:  []*runtimestate.SandboxStatus{{ID: "box", Ready: true, IPs: []string{"10.0.0.1"}}},
					Containers: []*runtimestate.ContainerStatus{last},
				}
				actions := podactions.Compute(pod, status, podactions.Facts{
					Now: now, Delays: map[string]time.Duration{"a": delay}, Ended: map[string]time.Time{"a": e.of(key, last, now)},
				})
				if len(actions.Start) != 1 {
					t.Fatalf("the actions are %+v", actions)
				}
				return actions.Start[0].BackOff
			}
			if got := look(start); got != c.first {
				t.Errorf("at first held for %s, want %s", got, c.first)
			}
			if got := look(start.Add(9 * time.Second)); got != c.later {
				t.Errorf("later held for %s, want %s", got, c.later)
			}
		})
	}
}

func TestEndsAreForgotten(t *testing.T) {
	e := newEnds(time.Minute)
	last := &runtimestate.ContainerStatus{ID: runtimestate.ContainerID{Type: "test", ID: "1"}, FinishedAt: start}
	e.of(containerKey{name: "a"}, last, start)
	e.of(containerKey{name: "b"}, last, start.Add(time.Hour))
	if len(e.seen) != 2 { // b's own sweep came before it
		e.of(containerKey{name: "c"}, last, start.Add(2*time.Hour))
	}
	if _, kept := e.seen[containerKey{name: "a"}]; kept {
		t.Error("an end of an hour ago is still known")
	}
}
