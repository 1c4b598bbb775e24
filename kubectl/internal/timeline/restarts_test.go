package timeline

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/golden"
	"kctl/proto/core"
	"kctl/proto/relay"
)

func later(ms float64) time.Time { return zero.Add(time.Duration(ms * float64(time.Millisecond))) }

// told are restarts as a kubelet tells of them: one for each cause, at various stages.
func told() []relay.Restart {
	crash := relay.Restart{
		Container: "web", Number: 3, Cause: relay.CauseExit, ExitCode: 1, Reason: "Error", Began: later(-200), Ended: later(0), BackOffFrom: later(20),
		BackOffUntil: later(20000), ImagePulled: later(20001), Created: later(20040), Started: later(20100), Ready: later(20101),
	}
	all := []relay.Restart{crash}
	for i, cause := range []relay.Cause{
		relay.CauseOOM, relay.CauseLiveness, relay.CauseStartup, relay.CausePostStart, relay.CauseDefinition, relay.CauseResize, relay.CauseRestartAll,
		relay.CauseSandbox, "",
	} {
		r := relay.Restart{Container: fmt.Sprint("c", i), Number: 1, Cause: cause, ExitCode: 137, Began: later(-30000), Ended: later(30000 * float64(i+1))}
		r.Created, r.Started = r.Ended.Add(30*time.Millisecond), r.Ended.Add(60*time.Millisecond)
		all = append(all, r)
	}
	waiting := crash
	waiting.Number, waiting.ExitCode, waiting.Reason = 4, 139, ""
	waiting.Began, waiting.Ended, waiting.BackOffFrom, waiting.BackOffUntil = later(400000), later(400100), later(400110), later(440100)
	waiting.ImagePulled, waiting.Created, waiting.Started, waiting.Ready = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return append(all, waiting, relay.Restart{Container: "lost", Number: 1, Created: later(500000)},
		relay.Restart{Container: "new", Number: 1, Cause: "newer", Ended: later(500001)})
}

func TestRestartsInWords(t *testing.T) {
	var out strings.Builder
	for _, r := range Restarts(told(), &core.Pod{}) {
		fmt.Fprintf(&out, "%s at %s: %s\n    %s\n", r.Title(), r.When(), r.Because(), r.Next())
	}
	golden.Compare(t, "restarts", out.String())
}

func TestTheWayOfARestart(t *testing.T) {
	var out bytes.Buffer
	if err := Restarts(told()[:1], &core.Pod{})[0].Way.Print(&out, 40); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "restart", out.String())
}

// A back-off that a change of the container cuts short was not waited for to its end.
func TestABackOffIsCutShort(t *testing.T) {
	r := told()[0]
	r.Created = r.BackOffFrom.Add(time.Second)
	for _, row := range Restarts([]relay.Restart{r}, &core.Pod{})[0].Way.Rows {
		if strings.HasPrefix(string(row.Hop), string(backOffOver)) {
			t.Errorf("%+v", row)
		}
	}
}

// Upstream's kubelet tells of no restarts: of the last one, the status does.
func TestRestartsFromAPIAlone(t *testing.T) {
	second := func(n int) metav1.Time {
		return metav1.NewTime(zero.Truncate(time.Second).Add(time.Duration(n) * time.Second))
	}
	before := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", StartedAt: second(0), FinishedAt: second(9)}}
	pod := &core.Pod{}
	pod.Status.ContainerStatuses = []core.ContainerStatus{
		{Name: "web", RestartCount: 7, LastTerminationState: before, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(30)}}},
		{Name: "waits", RestartCount: 2, LastTerminationState: before,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
		{Name: "first", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(1)}}},
	}
	var out strings.Builder
	for _, r := range Restarts(nil, pod) {
		fmt.Fprintf(&out, "%s at %s: %s\n    %s\n", r.Title(), r.When(), r.Because(), r.Next())
	}
	golden.Compare(t, "restarts-upstream", out.String())
	known := []relay.Restart{{Container: "web", Number: 7, Cause: relay.CauseLiveness, Ended: later(9000)}, {Container: "waits", Number: 3, Ended: later(9000)}}
	for _, r := range Restarts(known, pod) {
		if r.Approximate {
			t.Errorf("what the kubelet has told is told again: %+v", r)
		}
	}
}

// A runtime says 1970 of a container that it could not start, of which the kubelet tells only what came before.
func TestARunThatNeverBegan(t *testing.T) {
	never := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "StartError", StartedAt: metav1.Unix(0, 0), FinishedAt: metav1.NewTime(later(9400).Truncate(time.Second)),
	}}
	pod := &core.Pod{}
	pod.Status.ContainerStatuses = []core.ContainerStatus{{
		Name: "web", RestartCount: 1, LastTerminationState: never, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}},
	}}
	all := Restarts([]relay.Restart{{Container: "web", Number: 1, Ended: later(8000), Created: later(9400)}}, pod)
	if len(all) != 2 || all[1].Number != 2 || all[1].Because() != "it ended (exit code 128, StartError)" {
		t.Errorf("got %+v", all)
	}
	pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "web", State: never}}
	for _, m := range FromAPI(pod, nil) {
		if m.Hop == relay.KubeletStarted.Of("web") {
			t.Errorf("it started at %s", m.At)
		}
	}
}

func TestRestartsOnThePage(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	var out bytes.Buffer
	if err := Layout(whole()).HTML(&out, About{Pod: pod, Restarts: Restarts(told(), pod)}); err != nil {
		t.Fatal(err)
	}
	page := parse(t, out.String())
	for _, want := range []string{"Restart 3 of web", "it ended by itself (exit code 1, Error) after 200.0 ms", "back-off over: web", "Restart 1 of c1",
		"it failed its liveness probe"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
