package podactions

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// anew gives a container a rule with which exit code 42 restarts all.
func anew(name string) option {
	return edit(name, func(c *core.Container) {
		c.RestartPolicyRules = append(c.RestartPolicyRules, corev1.ContainerRestartRule{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		})
	})
}

func restartAllCases() []actionCase {
	never := policy(corev1.RestartPolicyNever)
	deleted := func(pod *core.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: epoch} }
	debugged := func(pod *core.Pod) {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "image"}}}
	}
	held := Facts{Now: epoch.Add(time.Hour), Delays: map[string]time.Duration{"a": 10 * time.Second}}
	return []actionCase{
		{name: "all anew, what runs is ended", pod: podWith("-i a b c", never, anew("a")), status: has("box i=0 a=42 b=running c=0"),
			want: "kill(b3: Container a exited with code 42, all containers will be restarted) all start(a)"},
		{name: "all anew, what ended is forgotten", pod: podWith("-i a b", never, anew("a")), status: has("box i=0 a=42 b=137"),
			want: "remove(b3) remove(i1) remove(a2) all"},
		{name: "all anew, forgotten", pod: podWith("-i a b", never, anew("a")), status: has("box"), want: "start(i)"},
		{name: "all anew, by a sidecar", pod: podWith("~s a", never, anew("s")), status: has("box s=42 a=137"), want: "remove(a2) remove(s1) all"},
		{name: "all anew, by a sidecar, what runs is ended", pod: podWith("~s a", never, anew("s")), status: has("box s=42 a=running"),
			want: "kill(a2: Container s exited with code 42, all containers will be restarted) all start(s)"},
		{name: "all anew, by the second sidecar", pod: podWith("~s ~t a", never, anew("t")), status: has("box s=running t=42 a=137"),
			want: "kill(s1: Container t exited with code 42, all containers will be restarted) all start(t)"},
		{name: "all anew, no sandbox is left", pod: podWith("a b", never, anew("a")), status: has("a=42 b=0"), want: "remove(b1) remove(a0) all"},
		{name: "all anew, not before the back-off", pod: podWith("a b", never, anew("a")), status: has("box a=42 b=137"), facts: held, want: "all start(a+9s)"},
		{name: "all anew, the sandbox died", pod: podWith("a b", never, anew("a")), status: has("box! a=42 b=0"), want: "remove(b2) remove(a1) all"},
		{name: "all anew, another exit code", pod: podWith("a b", never, anew("a")), status: has("box a=41 b=running"), want: ""},
		{name: "all anew, another rule first", pod: podWith("a b", never, rule("a", corev1.ContainerRestartRuleOnExitCodesOpIn), anew("a")),
			status: has("box a=42 b=running"), want: "start(a)"},
		{name: "all anew, not of a pod that goes", pod: podWith("a b", never, anew("a"), deleted), status: has("box a=42 b=running"), want: ""},
		{name: "all anew, ephemeral containers are not forgotten", pod: podWith("a", never, anew("a"), debugged), status: has("box a=42 e=0"),
			want: "remove(a1) all"},
	}
}
