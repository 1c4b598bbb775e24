package podactions

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// actionCase is a pod, what the runtime has of it, and the expected actions as
// summary writes them.
type actionCase struct {
	name   string
	pod    *core.Pod
	status *runtimestate.PodStatus
	facts  Facts
	want   string
}

func TestComputePodActions(t *testing.T) {
	var cases []actionCase
	for _, group := range [][]actionCase{sandboxCases(), containerCases(), initCases(), sidecarCases(), restartAllCases()} {
		cases = append(cases, group...)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.facts.Now.IsZero() {
				c.facts.Now = epoch.Add(time.Hour)
			}
			pod, status := c.pod.DeepCopy(), c.status.Clone()
			if got := summary(Compute(pod, status, c.facts)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !reflect.DeepEqual(pod, c.pod) || !reflect.DeepEqual(status, c.status) {
				t.Error("it changed its arguments")
			}
		})
	}
}

// summary writes actions on one line: "killpod kill(a:why) remove(id)
// sandbox#attempt start(a,b+3s)".
func summary(a Actions) string {
	var parts []string
	if a.KillPod {
		parts = append(parts, "killpod")
	}
	for _, k := range a.Kill {
		parts = append(parts, fmt.Sprintf("kill(%s: %s)", k.ID.ID, k.Message))
	}
	for _, r := range a.Resize {
		parts = append(parts, fmt.Sprintf("resize(%s)", r.ID.ID))
	}
	for _, id := range a.Remove {
		parts = append(parts, fmt.Sprintf("remove(%s)", id.ID))
	}
	if a.CreateSandbox {
		parts = append(parts, fmt.Sprintf("sandbox#%d", a.Attempt))
	}
	if a.RestartAll != nil {
		parts = append(parts, "all")
	}
	for _, s := range a.Start {
		name := s.Name
		if s.BackOff > 0 {
			name += "+" + s.BackOff.String()
		}
		parts = append(parts, fmt.Sprintf("start(%s)", name))
	}
	return strings.Join(parts, " ")
}

type option func(*core.Pod)

func podWith(names string, options ...option) *core.Pod {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u"}}
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	for name := range strings.FieldsSeq(names) {
		c := core.Container{Name: strings.TrimLeft(name, "-~"), Image: "image"}
		switch {
		case strings.HasPrefix(name, "-"): // an init container
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		case strings.HasPrefix(name, "~"): // a sidecar
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	for _, o := range options {
		o(pod)
	}
	return pod
}

func policy(p corev1.RestartPolicy) option { return func(pod *core.Pod) { pod.Spec.RestartPolicy = p } }

func edit(name string, change func(*core.Container)) option {
	return func(pod *core.Pod) { change(core.FindContainer(pod, name)) }
}

// rule gives a container the policy Never and a rule about exit code 42.
func rule(name string, op corev1.ContainerRestartRuleOnExitCodesOperator) option {
	return ruleFor(name, op, 42)
}

func ruleFor(name string, op corev1.ContainerRestartRuleOnExitCodesOperator, exitCode int32) option {
	never := corev1.ContainerRestartPolicyNever
	return edit(name, func(c *core.Container) {
		c.RestartPolicy = &never
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestart,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: op, Values: []int32{exitCode}},
		}}
	})
}

func deleted(pod *core.Pod) { now := metav1.NewTime(epoch); pod.DeletionTimestamp = &now }

// has makes a status from words: a sandbox is "box", "box!" if not ready;
// containers are "name=running", created, unknown or an exit code; later words
// are newer, and containers are in the sandbox before them.
func has(words string) *runtimestate.PodStatus {
	s, box := &runtimestate.PodStatus{UID: "u", Name: "p", Namespace: "default"}, ""
	for i, word := range strings.Fields(words) {
		at := epoch.Add(time.Duration(i) * time.Minute)
		if strings.HasPrefix(word, "box") {
			box = fmt.Sprintf("box%d", i)
			s.Sandboxes = append(s.Sandboxes, &runtimestate.SandboxStatus{
				ID: box, Attempt: uint32(len(s.Sandboxes)), Ready: word == "box" || word == "box-host" || word == "box-noip",
				HostNetwork: word == "box-host", CreatedAt: at, IPs: map[bool][]string{true: {"10.0.0.1"}}[word == "box" || word == "box!"],
			})
			continue
		}
		name, state, _ := strings.Cut(word, "=")
		c := &runtimestate.ContainerStatus{
			ID: runtimestate.ContainerID{Type: "test", ID: fmt.Sprintf("%s%d", name, i)}, SandboxID: box, Name: name, CreatedAt: at, StartedAt: at,
			Hash: runtimestate.HashContainer(&core.Container{Name: name, Image: "image"}), State: runtimestate.ContainerState(state),
		}
		if n, err := fmt.Sscanf(state, "%d", &c.ExitCode); err == nil && n == 1 {
			c.State, c.FinishedAt = runtimestate.StateExited, epoch.Add(time.Hour-time.Second)
		}
		s.Containers = append(s.Containers, c)
	}
	s.Sort()
	return s
}

func sandboxCases() []actionCase {
	always := corev1.ContainerRestartPolicyAlways
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	return []actionCase{
		{name: "nothing yet", pod: podWith("a b"), status: has(""), want: "sandbox#0 start(a) start(b)"},
		{name: "nothing yet, init", pod: podWith("-i -j a"), status: has(""), want: "sandbox#0 start(i)"},
		{name: "sandbox only", pod: podWith("a b"), status: has("box"), want: "start(a) start(b)"},
		{name: "all runs", pod: podWith("a b"), status: has("box a=running b=running"), want: ""},
		{name: "sandbox died", pod: podWith("a"), status: has("box! a=137"), want: "killpod sandbox#1 start(a)"},
		{name: "sandbox died again", pod: podWith("a"), status: has("box! box! a=137"), want: "killpod sandbox#2 start(a)"},
		{name: "container outlived sandbox", pod: podWith("a"), status: has("box! a=running"), want: "killpod sandbox#1 start(a)"},
		{name: "two sandboxes", pod: podWith("a"), status: has("box box a=running"), want: "killpod sandbox#2 start(a)"},
		{name: "no address", pod: podWith("a"), status: has("box-noip a=running"), want: "killpod sandbox#1 start(a)"},
		{name: "host network needs none", pod: podWith("a", func(p *core.Pod) { p.Spec.HostNetwork = true }), status: has("box-host a=running"), want: ""},
		{name: "other network", pod: podWith("a", func(p *core.Pod) { p.Spec.HostNetwork = true }), status: has("box a=running"), want: "killpod sandbox#1 start(a)"},
		{name: "died, never again", pod: podWith("a", policy(corev1.RestartPolicyNever)), status: has("box! a=0"), want: "killpod"},
		{name: "died, one never ran, never again", pod: podWith("a b", policy(corev1.RestartPolicyNever)), status: has("box! a=1"), want: "killpod"},
		{name: "died while initializing, never again", pod: podWith("-i a", policy(corev1.RestartPolicyNever)), status: has("box! i=137"), want: "killpod"},
		{name: "died before anything started, never again", pod: podWith("a b", policy(corev1.RestartPolicyNever)), status: has("box! a=created"),
			want: "killpod sandbox#1 start(a) start(b)"},
		{name: "died before one started, never again", pod: podWith("a b", policy(corev1.RestartPolicyNever)), status: has("box! a=created b=1"), want: "killpod"},
		{name: "died, own policies", pod: podWith("a b", policy(corev1.RestartPolicyNever), edit("a", func(c *core.Container) { c.RestartPolicy = &always })),
			status: has("box! a=1 b=0"), want: "killpod sandbox#1 start(a)"},
		{name: "died before it ran, never again", pod: podWith("a", policy(corev1.RestartPolicyNever)), status: has("box!"), want: "killpod sandbox#1 start(a)"},
		{name: "died, all done", pod: podWith("a b", policy(corev1.RestartPolicyOnFailure)), status: has("box! a=0 b=0"), want: "killpod"},
		{name: "died, one failed", pod: podWith("a b", policy(corev1.RestartPolicyOnFailure)), status: has("box! a=0 b=1"), want: "killpod sandbox#1 start(b)"},
		{name: "died, init again", pod: podWith("-i a"), status: has("box! i=0 a=1"), want: "killpod sandbox#1 start(i)"},
		{name: "died while initializing", pod: podWith("-i a", policy(corev1.RestartPolicyOnFailure)), status: has("box! i=137"), want: "killpod sandbox#1 start(i)"},
		{name: "died, rule applies", pod: podWith("a b", rule("a", in), policy(corev1.RestartPolicyNever)), status: has("box! a=42 b=0"),
			want: "killpod sandbox#1 start(a)"},
		{name: "died, rule applies to one that never ran", pod: podWith("a b", rule("a", in), policy(corev1.RestartPolicyNever)), status: has("box! b=42"),
			want: "killpod"},
		{name: "died, rule does not apply", pod: podWith("a", rule("a", in)), status: has("box! a=41"), want: "killpod"},
		{name: "died, rule excludes", pod: podWith("a", rule("a", notIn)), status: has("box! a=41"), want: "killpod sandbox#1 start(a)"},
		{name: "died, rule applies to success", pod: podWith("a", ruleFor("a", in, 0), policy(corev1.RestartPolicyOnFailure)), status: has("box! a=0"),
			want: "killpod sandbox#1 start(a)"},
		{name: "died, rule before policy", pod: podWith("a b", rule("a", in), policy(corev1.RestartPolicyOnFailure)), status: has("box! a=41 b=1"),
			want: "killpod sandbox#1 start(b)"},
		{name: "died, rule, still runs", pod: podWith("a", rule("a", in)), status: has("box! a=running"), want: "killpod"},
		{name: "died, rule, unknown", pod: podWith("a", rule("a", notIn)), status: has("box! a=unknown"), want: "killpod"},
		{name: "died, rule, init again", pod: podWith("-i a", rule("a", in)), status: has("box! i=0 a=42"), want: "killpod sandbox#1 start(i)"},
		{name: "died while initializing, rule of init", pod: podWith("-i a", rule("i", in), policy(corev1.RestartPolicyNever)), status: has("box! i=42"),
			want: "killpod sandbox#1 start(i)"},
		{name: "died while initializing, rule of init does not apply", pod: podWith("-i a", rule("i", in), policy(corev1.RestartPolicyNever)),
			status: has("box! i=41"), want: "killpod"},
		{name: "died, rule, and is to end", pod: podWith("a", rule("a", in), deleted), status: has("box! a=42"), want: "killpod"},
		{
			name: "died, rule, held back", pod: podWith("a", rule("a", in)), status: has("box! a=42"),
			facts: Facts{Delays: map[string]time.Duration{"a": 10 * time.Second}}, want: "killpod sandbox#1 start(a+9s)",
		},
		{name: "died, and is to end", pod: podWith("a", deleted), status: has("box! a=1"), want: "killpod"},
		{
			name: "died while held back", pod: podWith("a"), status: has("box! a=1"),
			facts: Facts{Delays: map[string]time.Duration{"a": 10 * time.Second}}, want: "killpod sandbox#1 start(a+9s)",
		},
	}
}

func containerCases() []actionCase {
	never, onFailure := corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure
	probe := &corev1.Probe{}
	probes := func(r ProbeResults) Facts {
		return Facts{Probes: map[runtimestate.ContainerID]ProbeResults{{Type: "test", ID: "a1"}: r, {Type: "test", ID: "a2"}: r}}
	}
	debugger := func(pod *core.Pod) {
		e := corev1.EphemeralContainer{}
		e.Name, e.Image = "debug", "image"
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{e}
	}
	small := map[string]corev1.ResourceRequirements{"a": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	larger := func(policy corev1.ResourceResizeRestartPolicy) option {
		return edit("a", func(c *core.Container) {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}
		})
	}
	return []actionCase{
		{name: "resized in place", pod: podWith("a b", larger(corev1.NotRequired)), status: has("box a=running b=running"), facts: Facts{Actual: small},
			want: "resize(a1)"},
		{name: "resized by a restart", pod: podWith("a", larger(corev1.RestartContainer)), status: has("box a=running"), facts: Facts{Actual: small},
			want: "kill(a1: Container a resize requires restart) start(a)"},
		{name: "resized by a restart, held back", pod: podWith("a", larger(corev1.RestartContainer)), status: has("box a=running"),
			facts: Facts{Actual: small, Delays: map[string]time.Duration{"a": time.Minute}}, want: "kill(a1: Container a resize requires restart) start(a)"},
		{name: "init container resized in place", pod: podWith("-i a", func(p *core.Pod) { p.Spec.InitContainers[0].Resources.Requests = resourcesOf("2", "1Gi") }),
			status: has("box i=running"), facts: Facts{Actual: map[string]corev1.ResourceRequirements{"i": {}}}, want: "resize(i1)"},
		{name: "sidecar resized in place", pod: podWith("~s a", func(p *core.Pod) { p.Spec.InitContainers[0].Resources.Requests = resourcesOf("2", "1Gi") }),
			status: has("box s=running a=running"), facts: Facts{Actual: map[string]corev1.ResourceRequirements{"s": {}}}, want: "resize(s1)"},
		{name: "the pod's limit changes, by which one is bounded", pod: podWith("a b",
			edit("b", func(c *core.Container) { c.Resources.Limits = resourcesOf("1", "1Gi") }), func(p *core.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Limits: resourcesOf("4", "4Gi")}
			}), status: has("box a=running b=running"), facts: Facts{Actual: map[string]corev1.ResourceRequirements{"a": {Limits: resourcesOf("2", "4Gi")},
			"b": {Limits: resourcesOf("1", "1Gi")}}}, want: "resize(a1)"},
		{name: "the pod's limit stays", pod: podWith("a", func(p *core.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: resourcesOf("4", "4Gi")}
		}), status: has("box a=running"), facts: Facts{Actual: map[string]corev1.ResourceRequirements{"a": {Limits: resourcesOf("4", "4Gi")}}}, want: ""},
		{name: "resized before it starts", pod: podWith("a", larger(corev1.NotRequired)), status: has("box a=0"), facts: Facts{Actual: small}, want: "start(a)"},
		{name: "one missing", pod: podWith("a b"), status: has("box a=running"), want: "start(b)"},
		{name: "exit, always", pod: podWith("a b"), status: has("box a=0 b=running"), want: "start(a)"},
		{name: "success, on failure", pod: podWith("a b", policy(corev1.RestartPolicyOnFailure)), status: has("box a=0 b=running"), want: ""},
		{name: "failure, on failure", pod: podWith("a b", policy(corev1.RestartPolicyOnFailure)), status: has("box a=2 b=running"), want: "start(a)"},
		{name: "failure, never", pod: podWith("a b", policy(corev1.RestartPolicyNever)), status: has("box a=2 b=running"), want: ""},
		{name: "all done, never", pod: podWith("a b", policy(corev1.RestartPolicyNever)), status: has("box a=2 b=0"), want: "killpod"},
		{name: "all done, on failure", pod: podWith("a", policy(corev1.RestartPolicyOnFailure)), status: has("box a=1 a=0"), want: "killpod"},
		{name: "own policy never", pod: podWith("a b", edit("a", func(c *core.Container) { c.RestartPolicy = &never })), status: has("box a=2 b=running"), want: ""},
		{name: "own policy on failure", pod: podWith("a", policy(corev1.RestartPolicyNever), edit("a", func(c *core.Container) { c.RestartPolicy = &onFailure })),
			status: has("box a=2"), want: "start(a)"},
		{name: "rule applies", pod: podWith("a", rule("a", corev1.ContainerRestartRuleOnExitCodesOpIn)), status: has("box a=42"), want: "start(a)"},
		{name: "rule does not apply", pod: podWith("a", rule("a", corev1.ContainerRestartRuleOnExitCodesOpIn)), status: has("box a=41"), want: "killpod"},
		{name: "rule excludes", pod: podWith("a", rule("a", corev1.ContainerRestartRuleOnExitCodesOpNotIn)), status: has("box a=41"), want: "start(a)"},
		{name: "unknown", pod: podWith("a"), status: has("box a=unknown"), want: `kill(a1: Container is in "unknown" state, try killing it before restart) start(a)`},
		{name: "created, never started", pod: podWith("a"), status: has("box a=created"), want: "remove(a1) start(a)"},
		{name: "image changed", pod: podWith("a b", policy(corev1.RestartPolicyNever), edit("a", func(c *core.Container) { c.Image = "other" })),
			status: has("box a=running b=running"), want: "kill(a1: Container a definition changed, will be restarted) start(a)"},
		{name: "image changed, held back", pod: podWith("a", edit("a", func(c *core.Container) { c.Image = "other" })), status: has("box a=running"),
			facts: Facts{Delays: map[string]time.Duration{"a": time.Minute}}, want: "kill(a1: Container a definition changed, will be restarted) start(a)"},
		{name: "liveness", pod: podWith("a", edit("a", func(c *core.Container) { c.LivenessProbe = probe })), status: has("box a=running"),
			facts: probes(ProbeResults{Liveness: ProbeFailure}), want: "kill(a1: Container a failed liveness probe, will be restarted) start(a)"},
		{name: "liveness unknown", pod: podWith("a", edit("a", func(c *core.Container) { c.LivenessProbe = probe })), status: has("box a=running"), want: ""},
		{name: "liveness, never", pod: podWith("a b", policy(corev1.RestartPolicyNever), edit("a", func(c *core.Container) { c.LivenessProbe = probe })),
			status: has("box a=running b=running"), facts: probes(ProbeResults{Liveness: ProbeFailure}), want: "kill(a1: Container a failed liveness probe)"},
		{name: "liveness, never, rule", pod: podWith("a", rule("a", corev1.ContainerRestartRuleOnExitCodesOpIn),
			edit("a", func(c *core.Container) { c.LivenessProbe = probe })), status: has("box a=running"), facts: probes(ProbeResults{Liveness: ProbeFailure}),
			want: "kill(a1: Container a failed liveness probe)"},
		{name: "liveness, never, alone", pod: podWith("a", policy(corev1.RestartPolicyNever), edit("a", func(c *core.Container) { c.LivenessProbe = probe })),
			status: has("box a=running"), facts: probes(ProbeResults{Liveness: ProbeFailure}), want: "killpod"},
		{name: "liveness, held back", pod: podWith("a", edit("a", func(c *core.Container) { c.LivenessProbe = probe })), status: has("box a=1 a=running"),
			facts: Facts{Delays: map[string]time.Duration{"a": time.Minute}, Probes: probes(ProbeResults{Liveness: ProbeFailure}).Probes},
			want:  "kill(a2: Container a failed liveness probe, will be restarted) start(a+59s)"},
		{name: "liveness, long after the run before", pod: podWith("a", edit("a", func(c *core.Container) { c.LivenessProbe = probe })),
			status: has("box a=1 a=running"), facts: Facts{Delays: map[string]time.Duration{"a": time.Second},
				Probes: probes(ProbeResults{Liveness: ProbeFailure}).Probes}, want: "kill(a2: Container a failed liveness probe, will be restarted) start(a)"},
		{name: "liveness, first run", pod: podWith("a", edit("a", func(c *core.Container) { c.LivenessProbe = probe })), status: has("box a=running"),
			facts: Facts{Delays: map[string]time.Duration{"a": time.Minute}, Probes: probes(ProbeResults{Liveness: ProbeFailure}).Probes},
			want:  "kill(a1: Container a failed liveness probe, will be restarted) start(a)"},
		{name: "liveness, to end", pod: podWith("a b", deleted, edit("a", func(c *core.Container) { c.LivenessProbe = probe })),
			status: has("box a=running b=running"), facts: probes(ProbeResults{Liveness: ProbeFailure}), want: "kill(a1: Container a failed liveness probe)"},
		{name: "startup", pod: podWith("a", edit("a", func(c *core.Container) { c.StartupProbe = probe })), status: has("box a=running"),
			facts: probes(ProbeResults{Startup: ProbeFailure}), want: "kill(a1: Container a failed startup probe, will be restarted) start(a)"},
		{name: "probe gone from spec", pod: podWith("a"), status: has("box a=running"), facts: probes(ProbeResults{Liveness: ProbeFailure}), want: ""},
		{name: "held back", pod: podWith("a b"), status: has("box a=1 b=running"), facts: Facts{Delays: map[string]time.Duration{"a": 20 * time.Second}},
			want: "start(a+19s)"},
		{name: "back-off ran out", pod: podWith("a"), status: has("box a=1"), facts: Facts{Delays: map[string]time.Duration{"a": time.Second}}, want: "start(a)"},
		{name: "to end", pod: podWith("a", deleted), status: has("box a=1"), want: "killpod"},
		{name: "to end, one runs", pod: podWith("a b", deleted), status: has("box a=1 b=running"), want: ""},
		{name: "ephemeral", pod: podWith("a", debugger), status: has("box a=running"), want: "start(debug)"},
		{name: "ephemeral ran", pod: podWith("a", debugger), status: has("box a=running debug=1"), want: ""},
		{name: "ephemeral waits for sandbox", pod: podWith("a", debugger), status: has(""), want: "sandbox#0 start(a)"},
	}
}

func initCases() []actionCase {
	return []actionCase{
		{name: "first init", pod: podWith("-i -j a"), status: has("box"), want: "start(i)"},
		{name: "init runs", pod: podWith("-i -j a"), status: has("box i=running"), want: ""},
		{name: "next init", pod: podWith("-i -j a"), status: has("box i=0"), want: "start(j)"},
		{name: "init failed", pod: podWith("-i -j a"), status: has("box i=0 j=1"), want: "start(j)"},
		{name: "init failed, held back", pod: podWith("-i a"), status: has("box i=1"), facts: Facts{Delays: map[string]time.Duration{"i": 10 * time.Second}},
			want: "start(i+9s)"},
		{name: "init failed for good", pod: podWith("-i -j a", policy(corev1.RestartPolicyNever)), status: has("box i=1"), want: "killpod"},
		{name: "init unknown", pod: podWith("-i a"), status: has("box i=unknown"),
			want: `kill(i1: Container is in "unknown" state, try killing it before restart) start(i)`},
		{name: "init unknown, never", pod: podWith("-i a", policy(corev1.RestartPolicyNever)), status: has("box i=unknown"), want: "killpod"},
		{name: "init created", pod: podWith("-i a"), status: has("box i=created"), want: "remove(i1) start(i)"},
		{name: "init done", pod: podWith("-i -j a b"), status: has("box i=0 j=0"), want: "start(a) start(b)"},
		{name: "early records gone", pod: podWith("-i -j a"), status: has("box j=0"), want: "start(a)"},
		{name: "all records gone", pod: podWith("-i -j a"), status: has("box a=1"), want: "start(a)"},
		{name: "in a new sandbox, init first", pod: podWith("-i -j a"), status: has("box! i=0 j=0 a=1 box"), want: "start(i)"},
		{name: "in a new sandbox, init runs", pod: podWith("-i a"), status: has("box! i=0 a=1 box i=running"), want: ""},
		{name: "in a new sandbox, next init", pod: podWith("-i -j a"), status: has("box! i=0 j=0 a=1 box i=0"), want: "start(j)"},
		{name: "in a new sandbox, init done", pod: podWith("-i a"), status: has("box! a=1 box i=0"), want: "start(a)"},
		{name: "in a new sandbox, all runs", pod: podWith("-i a"), status: has("box! a=1 box a=running"), want: ""},
		{name: "in a new sandbox, sidecar first", pod: podWith("~s -i a"), status: has("box! s=137 a=1 box"), want: "start(s)"},
		{name: "in a new sandbox, sidecar runs", pod: podWith("~s -i a"), status: has("box! s=137 i=0 a=1 box s=running"), want: "start(i)"},
		{name: "init to end", pod: podWith("-i a", deleted), status: has("box i=1"), want: ""},
	}
}

func sidecarCases() []actionCase {
	probe := &corev1.Probe{}
	startup := edit("s", func(c *core.Container) { c.StartupProbe = probe })
	liveness := edit("s", func(c *core.Container) { c.LivenessProbe = probe })
	result := func(r ProbeResults) Facts {
		return Facts{Probes: map[runtimestate.ContainerID]ProbeResults{{Type: "test", ID: "s1"}: r}}
	}
	return []actionCase{
		{name: "sidecar first", pod: podWith("~s -i a"), status: has("box"), want: "start(s)"},
		{name: "sidecar runs, next init", pod: podWith("~s -i a"), status: has("box s=running"), want: "start(i)"},
		{name: "sidecar last, containers", pod: podWith("-i ~s a"), status: has("box i=0 s=running"), want: "start(a)"},
		{name: "sidecar not started up", pod: podWith("~s -i a", startup), status: has("box s=running"), want: ""},
		{name: "sidecar started up", pod: podWith("~s -i a", startup), status: has("box s=running"), facts: result(ProbeResults{Startup: ProbeSuccess}),
			want: "start(i)"},
		{name: "sidecar failed to start up", pod: podWith("~s -i a", startup), status: has("box s=running"), facts: result(ProbeResults{Startup: ProbeFailure}),
			want: "kill(s1: Init container s failed startup probe) start(s)"},
		{name: "sidecar died while initializing", pod: podWith("~s -i a"), status: has("box s=1 i=running"), want: "start(s)"},
		{name: "sidecar died before next init", pod: podWith("~s -i a"), status: has("box s=1"), want: "start(s)"},
		{name: "sidecar died in a running pod", pod: podWith("~s a", policy(corev1.RestartPolicyNever)), status: has("box s=0 a=running"), want: "start(s)"},
		{name: "sidecar record gone", pod: podWith("~s a"), status: has("box a=running"), want: "start(s)"},
		{name: "sidecar unknown", pod: podWith("~s a"), status: has("box s=unknown a=running"),
			want: `kill(s1: Container is in "unknown" state, try killing it before restart) start(s)`},
		{name: "sidecar liveness", pod: podWith("~s a", liveness), status: has("box s=running a=running"), facts: result(ProbeResults{Liveness: ProbeFailure}),
			want: "kill(s1: Init container s failed liveness probe) start(s)"},
		{name: "sidecar liveness, to end", pod: podWith("~s a", liveness, deleted), status: has("box s=running a=running"),
			facts: result(ProbeResults{Liveness: ProbeFailure}), want: "kill(s1: Init container s failed liveness probe)"},
		{name: "sidecar changed", pod: podWith("~s a", edit("s", func(c *core.Container) { c.Image = "other" })), status: has("box s=running a=running"),
			want: "kill(s1: Init container s definition changed) start(s)"},
		{name: "sidecar held back", pod: podWith("~s a"), status: has("box s=1 a=running"), facts: Facts{Delays: map[string]time.Duration{"s": 10 * time.Second}},
			want: "start(s+9s)"},
		{name: "sidecars end with the pod", pod: podWith("~s a", policy(corev1.RestartPolicyNever)), status: has("box s=1 a=0"), want: "killpod"},
		{name: "sidecar and container died", pod: podWith("~s a"), status: has("box s=1 a=1"), want: "start(s) start(a)"},
		{name: "sidecar of a pod to end", pod: podWith("~s a", deleted), status: has("box s=1 a=running"), want: ""},
	}
}

func TestIdle(t *testing.T) {
	held := Start{Name: "a", BackOff: time.Second}
	for want, cases := range map[bool][]Actions{
		true:  {{}, {SandboxID: "x"}, {Start: []Start{held}}},
		false: {{KillPod: true}, {CreateSandbox: true}, {Start: []Start{held, {Name: "b"}}}, {Kill: []Kill{{}}}, {Remove: []runtimestate.ContainerID{{}}}},
	} {
		for _, a := range cases {
			if a.Idle() != want {
				t.Errorf("idle(%+v) = %v", a, !want)
			}
		}
	}
}

func resourcesOf(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
