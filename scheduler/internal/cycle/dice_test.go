package cycle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/profile"
)

// dice makes clusters and pods that come close to every rule.
type dice struct{ *rand.Rand }

func (d dice) once(in int) bool { return d.IntN(in) == 0 }

func (d dice) of(values ...string) string { return values[d.IntN(len(values))] }

func (d dice) node(i int) *core.Node {
	node := fixture.Node(fmt.Sprintf("n%02d", i), fixture.Allocatable("cpu", fmt.Sprint(1+d.IntN(4)), "memory", fmt.Sprint(1+d.IntN(4), "Gi"), "pods",
		fmt.Sprint(2+d.IntN(6))))
	for _, key := range []string{"zone", "rack"} {
		if !d.once(5) {
			node.Labels[key] = d.of("a", "b", "c")
		}
	}
	if d.once(4) {
		fixture.Taint(d.of("k", "l"), d.of("v", "w"), corev1.TaintEffect(d.of("NoSchedule", "NoExecute", "PreferNoSchedule")))(node)
	}
	node.Spec.Unschedulable = d.once(8)
	return node
}

func (d dice) selector() *metav1.LabelSelector {
	if d.once(6) {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": d.of("x", "y")}}
}

func (d dice) term() []corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{TopologyKey: d.of("zone", "rack", corev1.LabelHostname), LabelSelector: d.selector()}
	if d.once(3) {
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": d.of("a", "b")}}
	}
	return []corev1.PodAffinityTerm{term}
}

func (d dice) pod(i int) *core.Pod {
	pod := fixture.Pod(fmt.Sprint("p", i), fixture.Requests("cpu", fmt.Sprintf("%dm", 100*d.IntN(12)), "memory", fmt.Sprintf("%dMi", 100*d.IntN(8))))
	pod.Namespace, pod.Labels = d.of("default", "default", "other"), map[string]string{"app": d.of("x", "y", "z")}
	if d.once(3) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: d.of("k", "", corev1.TaintNodeUnschedulable), Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffect(d.of("", "NoSchedule"))}}
	}
	if d.once(6) {
		pod.Spec.NodeSelector = map[string]string{"zone": d.of("a", "b")}
	}
	if d.once(5) {
		fixture.HostPort(d.of("", "10.0.0.1", "10.0.0.2"), corev1.Protocol(d.of("TCP", "UDP")), 80)(pod)
	}
	pod.Spec.Affinity = d.affinity()
	for range d.IntN(3) {
		c := corev1.TopologySpreadConstraint{
			TopologyKey:       d.of("zone", "rack"),
			MaxSkew:           1 + d.Int32N(2),
			WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector:     d.selector(),
		}
		if d.once(4) {
			domains := 1 + d.Int32N(4)
			c.MinDomains = &domains
		}
		affinity, taint := corev1.NodeInclusionPolicy(d.of("Honor", "Ignore")), corev1.NodeInclusionPolicy(d.of("Honor", "Ignore"))
		c.NodeAffinityPolicy, c.NodeTaintsPolicy = &affinity, &taint
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, c)
	}
	return pod
}

func (d dice) affinity() *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if d.once(5) {
		var terms []corev1.NodeSelectorTerm
		for range 1 + d.IntN(2) {
			r := corev1.NodeSelectorRequirement{Key: d.of("zone", "rack"), Operator: corev1.NodeSelectorOperator(d.of("In", "NotIn", "Exists", "DoesNotExist"))}
			if r.Operator == corev1.NodeSelectorOpIn || r.Operator == corev1.NodeSelectorOpNotIn {
				r.Values = []string{d.of("a", "b")}
			}
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
		}
		affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	if d.once(4) {
		affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: d.term()}
	}
	if d.once(4) {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: d.term()}
	}
	return affinity
}

// kinds are kinds of pods. In half of the clusters, none has rules about other
// pods: with such rules, plugins that don't sign are asked.
func (d dice) kinds(n int) []*core.Pod {
	apart := d.once(2)
	var kinds []*core.Pod
	for i := range n {
		pod := d.pod(i)
		fixture.Requests("cpu", d.of("100m", "900m"))(pod) // kinds differ little
		if !apart {
			pod.Spec.Affinity.PodAffinity, pod.Spec.Affinity.PodAntiAffinity = nil, nil
		}
		kinds = append(kinds, pod)
	}
	return kinds
}

// again is another pod of the same kind.
func again(pod *core.Pod) (namespace string, labels map[string]string, spec core.PodSpec) {
	return pod.Namespace, pod.Labels, *pod.Spec.DeepCopy()
}

// withNamespaces gives plugins the labels of namespaces.
var withNamespaces = profile.Services{Handle: framework.Handle{Namespaces: func(name string) labels.Set { return namespaceLabels[name] }}}

// defaultProfile is kube-scheduler's without a configuration.
func defaultProfile(t testing.TB, services profile.Services) *framework.Profile {
	t.Helper()
	configuration, err := profile.Default()
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := configuration.Build(services)
	if err != nil {
		t.Fatal(err)
	}
	return profiles[core.DefaultSchedulerName]
}
