package timeline

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/golden"
	"kctl/proto/core"
	"kctl/proto/relay"
)

var zero = time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)

func at(hop relay.Hop, ms float64) Moment {
	return Moment{Hop: hop, At: zero.Add(time.Duration(ms * float64(time.Millisecond)))}
}

func whole() []Moment {
	return []Moment{
		at(relay.ClientStarted, 0), at(relay.ClientGenerated, 0.4), at(relay.ClientSent, 0.5),
		at(relay.ServerReceived, 1.6), at(relay.ServerAuthenticated, 1.7), at(relay.ServerAuthorized, 1.8),
		at(relay.ServerDecoded, 2), at(relay.ServerMutated, 2.1), at(relay.ServerValidated, 2.2), at(relay.ServerAdmitted, 2.3),
		at(relay.ServerStored, 4.9), at(relay.ServerWatched, 5.2),
		at(relay.SchedulerQueued, 5.9), at(relay.SchedulerPopped, 6), at(relay.SchedulerFiltered, 6.2),
		at(relay.SchedulerScored, 6.3), at(relay.SchedulerAssumed, 6.4), at(relay.SchedulerPermitted, 6.4),
		at(relay.SchedulerBinding, 6.5), at(relay.ServerBound, 10),
		at(relay.KubeletSeen, 11), at(relay.KubeletAdmitted, 11.1), at(relay.KubeletWorker, 11.4), at(relay.KubeletCgroupCreated, 12),
		at(relay.KubeletVolumesReady, 13),
		// The image is pulled while the sandbox is created.
		at(relay.KubeletImagePulled.Of("web"), 61), at(relay.KubeletSandboxCreated, 93),
		at(relay.KubeletCreated.Of("web"), 113), at(relay.KubeletStarted.Of("web"), 141),
		at(relay.KubeletRunning, 142), at(relay.ServerStatusRunning, 147), at(relay.KubeletReady, 142),
		at("future.moment", 150),
	}
}

func TestPrint(t *testing.T) {
	cases := map[string]Timeline{
		"whole": Layout(whole()),
		"empty": Layout(nil),
		"one":   Layout(whole()[:1]),
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := line.Print(&out, 40); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out.String())
		})
	}
}

// On a terminal no line is broken, however long the containers' names are.
func TestPrintInAsManyColumnsAsThereAre(t *testing.T) {
	moments := whole()
	for i := range moments {
		if name, _, of := strings.Cut(string(moments[i].Hop), "/"); of {
			moments[i].Hop = relay.Hop(name + "/a-container-with-a-rather-long-name")
		}
	}
	late := slices.Clone(moments) // as of a pod that waited for twelve days
	late[len(late)-1].At = late[len(late)-1].At.Add(300 * time.Hour)
	for columns, named := range map[int]bool{80: false, 132: true, 200: true} {
		var out, lateOut bytes.Buffer
		if err := errors.Join(Layout(moments).PrintIn(&out, columns), Layout(late).PrintIn(&lateOut, columns)); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String() + lateOut.String()) {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width >= columns {
				t.Errorf("%d of %d columns: %s", width, columns, line)
			}
		}
		if strings.Contains(out.String(), "created: a-container-with-a-rather-long-name ") != named || !strings.Contains(out.String(), "█") {
			t.Errorf("in %d columns:\n%s", columns, out.String())
		}
	}
}

func TestLayoutCountsFromWhatWasWaitedFor(t *testing.T) {
	took := map[relay.Hop]time.Duration{}
	for _, row := range Layout(whole()).Rows {
		took[row.Hop] = row.Took
	}
	for hop, want := range map[relay.Hop]float64{
		relay.ClientStarted:                0,
		relay.ServerStored:                 2.6,
		relay.KubeletImagePulled.Of("web"): 49, // since the control group was made, not since the row before
		relay.KubeletSandboxCreated:        80, // since the volumes were ready
		relay.KubeletCreated.Of("web"):     20, // since the later of sandbox and image
	} {
		if got := took[hop]; got != time.Duration(want*float64(time.Millisecond)) {
			t.Errorf("%s took %v, want %v ms", hop, got, want)
		}
	}
}

func TestLayoutIgnoresOrderAndRepeats(t *testing.T) {
	moments := whole()
	for i, j := 0, len(moments)-1; i < j; i, j = i+1, j-1 {
		moments[i], moments[j] = moments[j], moments[i]
	}
	moments = append(moments, at(relay.ServerStored, 999), Moment{Hop: relay.ServerBound})
	line := Layout(moments)
	if len(line.Rows) != len(whole()) || line.Total != 150*time.Millisecond {
		t.Fatalf("%d rows in %v, want %d in 150ms", len(line.Rows), line.Total, len(whole()))
	}
	for i := 1; i < len(line.Rows); i++ {
		if line.Rows[i].At.Before(line.Rows[i-1].At) {
			t.Errorf("row %d (%s) is before row %d", i, line.Rows[i].Hop, i-1)
		}
	}
}

// somePod is a pod as upstream's programs leave it, with times in whole
// seconds.
func somePod() (*core.Pod, []core.Event) {
	second := func(n int) metav1.Time {
		return metav1.NewTime(zero.Truncate(time.Second).Add(time.Duration(n) * time.Second))
	}
	start := second(0)
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: second(0)}}
	pod.Status.StartTime = &start
	pod.Status.Conditions = []core.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: second(0)},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: second(2)},
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, LastTransitionTime: second(1)},
	}
	pod.Status.ContainerStatuses = []core.ContainerStatus{
		{Name: "web", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(2)}}},
		{Name: "restarted", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(9)}}},
	}
	event := func(reason, field string, when metav1.Time) core.Event {
		return core.Event{Reason: reason, InvolvedObject: core.ObjectReference{FieldPath: field}, FirstTimestamp: when}
	}
	return pod, []core.Event{
		event("Pulled", "spec.containers{web}", second(1)), event("Created", "spec.containers{web}", second(1)),
		event("Killing", "spec.containers{web}", second(1)),
		{Reason: "Scheduled", EventTime: metav1.NewMicroTime(zero.Add(20 * time.Millisecond))},
	}
}

func TestFromAPIAlone(t *testing.T) {
	pod, events := somePod()
	var out bytes.Buffer
	if err := Merge(nil, FromAPI(pod, events)).Print(&out, 40); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "upstream", out.String())
}

// If a program stamped its legs, the API's whole seconds are not mixed in; they
// are used for programs without stamps.
func TestMergePrefersStamps(t *testing.T) {
	pod, events := somePod()
	var stamps []Moment
	for _, m := range whole() {
		if m.Hop < "kubelet" || m.Hop > "kubeleu" {
			stamps = append(stamps, m)
		}
	}
	for _, row := range Merge(stamps, FromAPI(pod, events)).Rows {
		if row.Approximate != (row.Who == "kubelet") {
			t.Errorf("%s of %s: approximate is %v", row.Hop, row.Who, row.Approximate)
		}
	}
	all := Merge(whole(), FromAPI(pod, events))
	if len(all.Rows) != len(whole()) {
		t.Errorf("%d rows, want the %d stamps only", len(all.Rows), len(whole()))
	}
}

// The end has a table of its own: between it and the start lies the pod's life.
func TestTheEndIsApart(t *testing.T) {
	end := []Moment{at(relay.ServerDeleting, 9e6), at(relay.KubeletStopping, 9e6+3), at(relay.KubeletStopped, 9e6+500), at(relay.ServerRemoved, 9e6+540)}
	pod, events := somePod()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: zero.Add(9030 * time.Second)}, new(int64(30))
	api := FromAPI(pod, events)
	stamps := append(whole(), end...)
	if way := Merge(stamps, api); len(way.Rows) != len(whole()) || way.Total > time.Second {
		t.Errorf("the way has %d moments in %v, want %d", len(way.Rows), way.Total, len(whole()))
	}
	its := MergeEnd(stamps, api)
	if len(its.Rows) != len(end) || its.Total != 540*time.Millisecond || its.Rows[3].Took != 40*time.Millisecond || its.Rows[3].Who != "apiserver" {
		t.Errorf("the end: %+v", its)
	}
	if coarse := MergeEnd(nil, api).Rows; len(coarse) != 1 || coarse[0].Hop != relay.ServerDeleting || !coarse[0].At.Equal(zero.Add(9000*time.Second)) {
		t.Errorf("the end by the API alone: %+v", coarse)
	}
	var out bytes.Buffer
	if err := Merge(stamps, api).HTML(&out, About{Pod: pod, End: its, Gone: true}); err != nil || !strings.Contains(out.String(), "<h2>Its end") ||
		!strings.Contains(out.String(), "hooks, signals, grace period") {
		t.Errorf("the page (%v):\n%s", err, out.String())
	}
}

func TestPrintRow(t *testing.T) {
	var out bytes.Buffer
	if err := PrintHead(&out); err != nil {
		t.Fatal(err)
	}
	for _, row := range Layout(whole()).Rows[25:28] {
		if err := PrintRow(&out, row); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "rows", out.String())
}
