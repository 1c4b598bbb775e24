package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	k8sresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)

func testPod(policy corev1.RestartPolicy, init, containers string) *core.Pod {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Generation: 3}}
	pod.Spec.RestartPolicy = policy
	for name := range strings.FieldsSeq(init) {
		c := core.Container{Name: strings.TrimSuffix(name, "+"), Image: "i"}
		if strings.HasSuffix(name, "+") {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for name := range strings.FieldsSeq(containers) {
		pod.Spec.Containers = append(pod.Spec.Containers, core.Container{Name: name, Image: "i"})
	}
	return pod
}

// ruled has its first container restarted after exit code 42, and never else.
func ruled(pod *core.Pod) *core.Pod {
	giveRule(&pod.Spec.Containers[0])
	return pod
}

func ruledInit(pod *core.Pod) *core.Pod {
	giveRule(&pod.Spec.InitContainers[0])
	return pod
}

func giveRule(c *core.Container) {
	c.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
}

// runtimeOf reads "name=running", "name=exit0", "name=created", newest first; those after "old" were
// in a sandbox that is gone.
func runtimeOf(text string) *runtimestate.PodStatus {
	s := &runtimestate.PodStatus{UID: "u", IPs: []string{"10.0.0.9"}, Sandboxes: []*runtimestate.SandboxStatus{{ID: "s", Ready: true}}}
	box := "s"
	for i, field := range strings.Fields(text) {
		name, state, isContainer := strings.Cut(field, "=")
		if !isContainer {
			box = name
			continue
		}
		c := &runtimestate.ContainerStatus{
			ID: runtimestate.ContainerID{Type: "t", ID: fmt.Sprint(name, i)}, SandboxID: box, Name: name, Image: "i",
			StartedAt: now, CreatedAt: now, State: runtimestate.ContainerState(state),
		}
		if n, err := fmt.Sscanf(state, "exit%d", &c.ExitCode); n == 1 && err == nil {
			c.State, c.FinishedAt = runtimestate.StateExited, now
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}

func yes(string, runtimestate.ContainerID) bool { return true }

// short writes the states as "init|containers" with R, T<code>, W:<reason>.
func short(statuses []core.ContainerStatus) string {
	var parts []string
	for _, s := range statuses {
		switch {
		case s.State.Running != nil:
			parts = append(parts, "R")
		case s.State.Terminated != nil:
			parts = append(parts, fmt.Sprintf("T%d:%s", s.State.Terminated.ExitCode, s.State.Terminated.Reason))
		default:
			parts = append(parts, "W:"+s.State.Waiting.Reason)
		}
	}
	return strings.Join(parts, " ")
}

func trueConditions(s *core.PodStatus) string {
	var names []string
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue {
			names = append(names, string(c.Type))
		}
	}
	return strings.Join(names, " ")
}

func TestGenerate(t *testing.T) {
	const always, never, onFailure = corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	const base = "PodReadyToStartContainers "
	for _, c := range []struct {
		name     string
		pod      *core.Pod
		runtime  string
		waiting  map[string]runtimestate.Waiting
		terminal bool
		phase    corev1.PodPhase
		states   string
		true     string
	}{
		{"new", testPod(always, "", "a b"), "", nil, false, corev1.PodPending, "W:ContainerCreating W:ContainerCreating", base + "Initialized PodScheduled"},
		{"running", testPod(always, "", "a"), "a=running", nil, false, corev1.PodRunning, "R", base + "Initialized Ready ContainersReady PodScheduled"},
		{"half running", testPod(always, "", "a b"), "a=running b=created", nil, false, corev1.PodPending, "R W:ContainerCreating",
			base + "Initialized PodScheduled"},
		{"pull failed", testPod(always, "", "a"), "", map[string]runtimestate.Waiting{"a": {Reason: "ErrImagePull", Message: "no"}}, false, corev1.PodPending,
			"W:ErrImagePull", base + "Initialized PodScheduled"},
		{"crash loop", testPod(always, "", "a"), "a=exit1", map[string]runtimestate.Waiting{"a": {Reason: "CrashLoopBackOff"}}, false, corev1.PodRunning,
			"W:CrashLoopBackOff", base + "Initialized PodScheduled"},
		{"old reason, runs again", testPod(always, "", "a"), "a=running a=exit1", map[string]runtimestate.Waiting{"a": {Reason: "CrashLoopBackOff"}}, false,
			corev1.PodRunning, "R", base + "Initialized Ready ContainersReady PodScheduled"},
		{"could not be started, again", testPod(onFailure, "", "a"), "a=exit128", map[string]runtimestate.Waiting{"a": {Reason: "RunContainerError"}}, false,
			corev1.PodRunning, "W:RunContainerError", base + "Initialized PodScheduled"},
		{"could not be started, never again", testPod(never, "", "a"), "a=exit128", map[string]runtimestate.Waiting{"a": {Reason: "RunContainerError"}}, false,
			corev1.PodFailed, "T128:Error", base + "Initialized PodScheduled"},
		{"init could not be started, never again", testPod(never, "i", "a"), "i=exit128", map[string]runtimestate.Waiting{"i": {Reason: "RunContainerError"}}, false,
			corev1.PodFailed, "T128:Error|W:PodInitializing", base + "PodScheduled"},
		{"completed", testPod(never, "", "a b"), "a=exit0 b=exit0", nil, false, corev1.PodSucceeded, "T0:Completed T0:Completed", base + "Initialized PodScheduled"},
		{"failed", testPod(never, "", "a b"), "a=exit0 b=exit3", nil, false, corev1.PodFailed, "T0:Completed T3:Error", base + "Initialized PodScheduled"},
		{"one left", testPod(never, "", "a b"), "a=running b=exit3", nil, false, corev1.PodRunning, "R T3:Error", base + "Initialized PodScheduled"},
		{"to be tried again", testPod(onFailure, "", "a"), "a=exit3", nil, false, corev1.PodRunning, "T3:Error", base + "Initialized PodScheduled"},
		{"on failure, done", testPod(onFailure, "", "a"), "a=exit0", nil, false, corev1.PodSucceeded, "T0:Completed", base + "Initialized PodScheduled"},
		{"rule applies", ruled(testPod(never, "", "a")), "a=exit42", nil, false, corev1.PodRunning, "T42:Error", base + "Initialized PodScheduled"},
		{"rule does not apply", ruled(testPod(never, "", "a")), "a=exit41", nil, false, corev1.PodFailed, "T41:Error", base + "Initialized PodScheduled"},
		{"rule applies, held back", ruled(testPod(never, "", "a b")), "a=exit42 b=exit0", map[string]runtimestate.Waiting{"a": {Reason: "CrashLoopBackOff"}}, false,
			corev1.PodRunning, "W:CrashLoopBackOff T0:Completed", base + "Initialized PodScheduled"},
		{"all never again by themselves", ruled(testPod(always, "", "a")), "a=exit0", nil, false, corev1.PodSucceeded, "T0:Completed",
			base + "Initialized PodScheduled"},
		{"rule of init applies", ruledInit(testPod(never, "i", "a")), "i=exit42", nil, false, corev1.PodPending, "T42:Error|W:PodInitializing",
			base + "PodScheduled"},
		{"rule of init does not apply", ruledInit(testPod(always, "i", "a")), "i=exit1", nil, false, corev1.PodFailed, "T1:Error|W:PodInitializing",
			base + "PodScheduled"},
		{"init runs", testPod(always, "i", "a"), "i=running", nil, false, corev1.PodPending, "R|W:PodInitializing", base + "PodScheduled"},
		{"init done", testPod(always, "i", "a"), "i=exit0", nil, false, corev1.PodPending, "T0:Completed|W:PodInitializing", base + "Initialized PodScheduled"},
		{"init failed for good", testPod(never, "i", "a"), "i=exit1", nil, false, corev1.PodFailed, "T1:Error|W:PodInitializing", base + "PodScheduled"},
		{"init failed, again", testPod(always, "i", "a"), "i=exit1", map[string]runtimestate.Waiting{"i": {Reason: "CrashLoopBackOff"}}, false, corev1.PodPending,
			"W:CrashLoopBackOff|W:PodInitializing", base + "PodScheduled"},
		{"sidecar and container", testPod(always, "i+", "a"), "a=running i=running", nil, false, corev1.PodRunning, "R|R",
			base + "Initialized Ready ContainersReady PodScheduled"},
		{"init is gone, container runs", testPod(always, "i", "a"), "a=running", nil, false, corev1.PodRunning, "T0:Completed|R",
			base + "Initialized Ready ContainersReady PodScheduled"},
		{"init is gone, container ended", testPod(never, "i", "a"), "a=exit0", nil, true, corev1.PodSucceeded, "T0:Completed|T0:Completed",
			base + "Initialized PodScheduled"},
		{"init runs again in a new sandbox", testPod(always, "i", "a"), "i=running old a=exit137", nil, false, corev1.PodPending, "R|T137:Error",
			base + "Initialized PodScheduled"},
		{"init is to run again in a new sandbox", testPod(always, "i", "a"), "old a=exit137", nil, false, corev1.PodPending, "W:PodInitializing|T137:Error",
			base + "Initialized PodScheduled"},
		{"sidecar starts again in a new sandbox", testPod(always, "i+", "a"), "old a=exit137", nil, false, corev1.PodPending, "W:PodInitializing|T137:Error",
			base + "Initialized PodScheduled"},
		{"sidecar ended with its sandbox", testPod(always, "i+", "a"), "old i=exit2 a=exit0", nil, false, corev1.PodRunning, "T2:Error|T0:Completed",
			base + "Initialized PodScheduled"},
		{"sidecar is gone", testPod(always, "i+", "a"), "a=running", nil, false, corev1.PodRunning, "W:PodInitializing|R", base + "Initialized PodScheduled"},
		{"ended while running", testPod(always, "", "a"), "a=exit0", nil, true, corev1.PodSucceeded, "T0:Completed", base + "Initialized PodScheduled"},
		{"ended before it began", testPod(always, "", "a"), "", nil, true, corev1.PodFailed, "T137:ContainerStatusUnknown", base + "Initialized PodScheduled"},
		{"killed", testPod(always, "", "a"), "a=exit137", nil, true, corev1.PodFailed, "T137:Error", base + "Initialized PodScheduled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{
				Pod: c.pod, Previous: &core.PodStatus{}, Runtime: runtimeOf(c.runtime), Waiting: c.waiting,
				Ready: yes, Started: yes, Terminal: c.terminal, HostIPs: []string{"192.0.2.1"}, Now: now,
			}
			got := Generate(in)
			states := short(got.ContainerStatuses)
			if len(got.InitContainerStatuses) > 0 {
				states = short(got.InitContainerStatuses) + "|" + states
			}
			if got.Phase != c.phase || states != c.states || trueConditions(&got) != c.true {
				t.Errorf("phase %s states %q true %q\nwant %s %q %q", got.Phase, states, trueConditions(&got), c.phase, c.states, c.true)
			}
			if got.PodIP != "10.0.0.9" || got.HostIP != "192.0.2.1" || got.ObservedGeneration != 3 || got.StartTime == nil {
				t.Errorf("addresses or times are missing: %+v", got)
			}
			// The same input later gives the same status: nothing is sent twice.
			in.Previous, in.Now = &got, now.Add(time.Minute)
			if again := Generate(in); !equality.Semantic.DeepEqual(got, again) {
				t.Errorf("not stable:\n%+v\n%+v", got, again)
			}
		})
	}
}

// A pod that has been initialized stays so while a sidecar and the container beside it wait for their
// next runs.
func TestWhatWasInitializedStaysSo(t *testing.T) {
	held := map[string]runtimestate.Waiting{"i": {Reason: "CrashLoopBackOff"}, "a": {Reason: "CrashLoopBackOff"}}
	in := Input{
		Pod:      testPod(corev1.RestartPolicyAlways, "i+", "a"),
		Previous: &core.PodStatus{},
		Runtime:  runtimeOf("i=exit5 a=running"),
		Ready:    yes,
		Started:  yes,
		Now:      now,
	}
	first := Generate(in)
	in.Previous, in.Runtime, in.Waiting = &first, runtimeOf("i=exit5 a=exit0"), held
	second := Generate(in)
	if c := findCondition(second.Conditions, corev1.PodInitialized); second.ContainerStatuses[0].State.Waiting == nil || c.Status != corev1.ConditionTrue ||
		c.Reason != "" {
		t.Errorf("%+v while the containers are %s", c, short(second.ContainerStatuses))
	}
}

func TestRestartKeepsTheLastEnd(t *testing.T) {
	in := Input{Pod: testPod(corev1.RestartPolicyAlways, "", "a"), Previous: &core.PodStatus{}, Ready: yes, Started: yes, Now: now}
	in.Runtime = runtimeOf("a=exit7")
	first := Generate(in)
	in.Previous, in.Runtime = &first, runtimeOf("b=running a=running") // the dead one was removed
	second := Generate(in)
	if last := second.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 7 {
		t.Errorf("last state %v, want exit code 7", last)
	}
	in.Previous, in.Runtime = &second, runtimeOf("")
	third := Generate(in)
	s := third.ContainerStatuses[0]
	if s.State.Waiting == nil || s.LastTerminationState.Terminated.Reason != runtimestate.ReasonContainerStatusUnknown || s.RestartCount != 1 {
		t.Errorf("a container gone without a trace: %+v", s)
	}
}

func TestWhatOthersWroteStays(t *testing.T) {
	gate := core.PodCondition{Type: "example.com/gate", Status: corev1.ConditionFalse}
	pod := testPod(corev1.RestartPolicyAlways, "", "a")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate.Type}}
	in := Input{
		Pod:      pod,
		Previous: &core.PodStatus{Conditions: []core.PodCondition{gate}, NominatedNodeName: "n"},
		Runtime:  runtimeOf("a=running"),
		Ready:    yes,
		Started:  yes,
		Now:      now,
	}
	got := Generate(in)
	if c := findCondition(got.Conditions, gate.Type); c == nil || c.Status != corev1.ConditionFalse || got.NominatedNodeName != "n" {
		t.Errorf("lost what others wrote: %+v", got)
	}
	if c := findCondition(got.Conditions, corev1.PodReady); c.Status != corev1.ConditionFalse || c.Reason != "ReadinessGatesNotReady" {
		t.Errorf("Ready is %+v though its gate is closed", c)
	}
	failed := core.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
	in.Previous = &failed
	if got := Generate(in); got.Phase != corev1.PodFailed || got.Reason != "Evicted" {
		t.Errorf("a failed pod came back: %s %s", got.Phase, got.Reason)
	}
}

func TestEphemeralContainersAreNeverReady(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "", "a")
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell"}}}
	got := Generate(Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtimeOf("a=running shell=running"), Ready: yes, Started: yes, Now: now})
	if s := got.EphemeralContainerStatuses[0]; s.State.Running == nil || s.Ready || s.Started != nil || s.Resources == nil {
		t.Errorf("status %+v", s)
	}
}

func TestProbesDecideReadiness(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "", "a b")
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
	pod.Spec.Containers[1].StartupProbe = &corev1.Probe{}
	no := func(string, runtimestate.ContainerID) bool { return false }
	got := Generate(Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtimeOf("a=running b=running"), Ready: no, Started: no, Now: now})
	a, b := got.ContainerStatuses[0], got.ContainerStatuses[1]
	if a.Ready || !*a.Started || b.Ready || *b.Started {
		t.Errorf("a ready=%v started=%v, b ready=%v started=%v", a.Ready, *a.Started, b.Ready, *b.Started)
	}
}

// The status has the allocated and the actual resources: a container's once it
// exists, the pod's once it runs.
func TestWhatWasGranted(t *testing.T) {
	list := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: k8sresource.MustParse(cpu)}
	}
	sized := func(a string) *core.Pod {
		pod := testPod(corev1.RestartPolicyAlways, "i", "a b")
		pod.Spec.InitContainers[0].Resources.Requests = list("10m")
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list(a), Limits: list(a)}
		pod.Spec.Overhead = list("5m")
		return pod
	}
	granted, actual := sized("200m"), sized("100m")
	granted.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = k8sresource.MustParse("48Mi")
	actual.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = k8sresource.MustParse("32Mi")
	for _, pod := range []*core.Pod{granted, actual} {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = k8sresource.MustParse("1Gi")
	}
	in := Input{Pod: granted, Previous: &core.PodStatus{}, Runtime: runtimeOf("a=running i=exit0"), Ready: yes, Started: yes, Now: now}
	in.Resources = func(name string) (corev1.ResourceRequirements, corev1.ResourceRequirements, bool) {
		if name == "i" {
			return granted.Spec.InitContainers[0].Resources, actual.Spec.InitContainers[0].Resources, true
		}
		i := slices.IndexFunc(granted.Spec.Containers, func(c core.Container) bool { return c.Name == name })
		return granted.Spec.Containers[i].Resources, actual.Spec.Containers[i].Resources, true
	}
	in.PodResources = func() (*core.Pod, *core.Pod, bool) { return granted, actual, true }
	tell := func(allocated corev1.ResourceList, has *corev1.ResourceRequirements) string {
		if has == nil {
			return "unknown"
		}
		return fmt.Sprintf("%s of %s up to %s", has.Requests.Cpu(), allocated.Cpu(), has.Limits.Cpu())
	}
	check := func(when string, status core.PodStatus, want string) {
		t.Helper()
		got := []string{tell(status.AllocatedResources, status.Resources)}
		for _, s := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
			got = append(got, s.Name+": "+tell(s.AllocatedResources, s.Resources))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", when, text, want)
		}
	}
	check("before it runs", Generate(in), "205m of 205m up to 205m, i: 10m of 10m up to 0, a: 100m of 200m up to 100m, b: unknown")
	in.Runtime = runtimeOf("a=running b=running i=exit0")
	status := Generate(in)
	const running = "105m of 205m up to 0, i: 10m of 10m up to 0, a: 100m of 200m up to 100m, b: 0 of 0 up to 0"
	check("while it runs", status, running)
	if pod, container := status.Resources.Requests.Memory(), status.ContainerStatuses[0].Resources.Requests.Memory(); pod.String() != "48Mi" ||
		container.String() != "32Mi" {
		t.Errorf("the pod requests %s of memory as soon as it is granted, its container %s as long as it has it", pod, container)
	}
	if _, told := status.Resources.Requests[corev1.ResourceEphemeralStorage]; told || len(status.Resources.Limits) > 0 {
		t.Errorf("a pod that runs has %+v: no control group bounds its disk, nor the pod as a whole, of which one container has no limit", status.Resources)
	}
	in.Previous, in.Terminal = &status, true // by a kubelet that does not know it
	in.Resources = func(string) (g, a corev1.ResourceRequirements, known bool) { return g, a, false }
	in.PodResources = func() (*core.Pod, *core.Pod, bool) { return nil, nil, false }
	check("in the end", Generate(in), running)
}

// kubectl prints a start time even for containers that could not be started: it
// must not be in the year 1.
func TestWhatNeverStartedDidSoAtTheBeginning(t *testing.T) {
	runtime := runtimeOf("a=exit128")
	runtime.Containers[0].StartedAt = time.Time{}
	status := Generate(Input{Pod: testPod(corev1.RestartPolicyNever, "", "a"), Previous: &core.PodStatus{}, Runtime: runtime, Now: now, Terminal: true})
	if got := status.ContainerStatuses[0].State.Terminated.StartedAt; got.Unix() != 0 {
		t.Errorf("started at %v, want the beginning of Unix' time, as upstream tells it", got)
	}
}
