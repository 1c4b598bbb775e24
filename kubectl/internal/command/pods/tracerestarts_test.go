package pods

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/timeline"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// Restarts are shown below the way, with the counts of all; and, for programs, each field and moment.
func TestTraceShowsRestarts(t *testing.T) {
	ended := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	pod := &core.Pod{}
	pod.Name, pod.Namespace = "web", "shop"
	pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", RestartCount: 12}, {Name: "proxy"}}
	again := timeline.Restarts([]relay.Restart{{
		Container: "c", Number: 12, Cause: relay.CauseLiveness, ExitCode: 137, Reason: "Error\x1b[2J",
		Began: ended.Add(-30 * time.Second), Ended: ended, Created: ended.Add(time.Second), Started: ended.Add(2 * time.Second),
	}}, pod)
	var out bytes.Buffer
	tracing := traceOptions{CLI: frame.New(frame.Streams{Out: &out}, clock.RealClock{})}
	if err := tracing.printWaterfall(&traceState{pod: pod, again: again}); err != nil {
		t.Fatal(err)
	}
	want := "\nIts restarts (c 12); the last that are known:\n\nRestart 12 of c, 2026-01-02 03:04:05.600 UTC\n" +
		"    it failed its liveness probe (exit code 137, Error"
	if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), ") after 30.0 s\n    created +1000.0 ms, started +2000.0 ms\n") ||
		strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}

	out.Reset()
	if err := tracing.printJSON(&traceState{pod: pod, again: again, gone: true}); err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Restarts []struct {
			relay.Restart
			Because           string        `json:"because"`
			Moments           []relay.Stamp `json:"moments"`
			TotalMilliseconds float64       `json:"totalMilliseconds"`
		} `json:"restarts"`
	}
	if err := json.Unmarshal(out.Bytes(), &shown); err != nil || len(shown.Restarts) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	if r := shown.Restarts[0]; r.Restart != again[0].Restart || r.TotalMilliseconds != 2000 || len(r.Moments) != 3 ||
		r.Moments[0].Hop != "kubelet.container-ended/c" || !strings.HasPrefix(r.Because, "it failed its liveness probe") {
		t.Errorf("%+v", r)
	}
	out.Reset()
	if err := tracing.printJSON(&traceState{pod: pod, gone: true}); err != nil || strings.Contains(out.String(), "restart") {
		t.Errorf("of a pod without restarts: %v %s", err, out.String())
	}
}
