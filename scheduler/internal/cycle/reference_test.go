package cycle

import (
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
)

// world is a cluster in the simplest form: the reference below reads it again
// and again, and keeps no counts.
type world struct {
	nodes []*core.Node
	pods  []*core.Pod // each has a node
}

var namespaceLabels = map[string]labels.Set{"default": {"team": "a"}, "other": {"team": "b"}}

// refusal says why node refuses pod by the documented rules, or "".
func (w *world) refusal(pod *core.Pod, node *core.Node) string {
	for _, check := range []func(*core.Pod, *core.Node) string{w.room, taints, selected, w.ports, w.together, w.spread} {
		if why := check(pod, node); why != "" {
			return why
		}
	}
	return ""
}

func (w *world) on(node *core.Node) []*core.Pod {
	var on []*core.Pod
	for _, p := range w.pods {
		if p.Spec.NodeName == node.Name {
			on = append(on, p)
		}
	}
	return on
}

func (w *world) room(pod *core.Pod, node *core.Node) string {
	on := w.on(node)
	if int64(len(on)) >= node.Status.Allocatable.Pods().Value() {
		return "pods"
	}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		want := pod.Spec.Containers[0].Resources.Requests[name]
		sum := want.DeepCopy()
		for _, p := range on {
			sum.Add(p.Spec.Containers[0].Resources.Requests[name])
		}
		if have := node.Status.Allocatable[name]; !want.IsZero() && sum.Cmp(have) > 0 {
			return string(name)
		}
	}
	return ""
}

func tolerated(pod *core.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == "" || t.Key == taint.Key) && (t.Effect == "" || t.Effect == taint.Effect) &&
			(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
	})
}

func taints(pod *core.Pod, node *core.Node) string {
	all := slices.Clone(node.Spec.Taints)
	if node.Spec.Unschedulable {
		all = append(all, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range all {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(pod, taint) {
			return "taint"
		}
	}
	return ""
}

func selected(pod *core.Pod, node *core.Node) string {
	for key, value := range pod.Spec.NodeSelector {
		if node.Labels[key] != value {
			return "node selector"
		}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for _, term := range terms {
		if !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return !meets(node, r) }) {
			return ""
		}
	}
	return "node affinity"
}

func meets(node *core.Node, r corev1.NodeSelectorRequirement) bool {
	value, has := node.Labels[r.Key]
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	}
	return !has // DoesNotExist
}

func (w *world) ports(pod *core.Pod, node *core.Node) string {
	for _, p := range w.on(node) {
		for _, a := range p.Spec.Containers[0].Ports {
			for _, b := range pod.Spec.Containers[0].Ports {
				if a.HostPort == b.HostPort && a.Protocol == b.Protocol && (a.HostIP == b.HostIP || a.HostIP == "" || b.HostIP == "") {
					return "port"
				}
			}
		}
	}
	return ""
}

// about reports whether a term of owner's matches other.
func about(owner *core.Pod, term corev1.PodAffinityTerm, other *core.Pod) bool {
	in := other.Namespace == owner.Namespace
	if term.NamespaceSelector != nil {
		in = matches(term.NamespaceSelector, namespaceLabels[other.Namespace])
	}
	return in && matches(term.LabelSelector, other.Labels)
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	for key, value := range selector.MatchLabels {
		if set[key] != value {
			return false
		}
	}
	return true
}

// near are the pods on nodes that share node's value of a label.
func (w *world) near(node *core.Node, key string) []*core.Pod {
	var near []*core.Pod
	for _, n := range w.nodes {
		if value, has := n.Labels[key]; has && value == node.Labels[key] {
			near = append(near, w.on(n)...)
		}
	}
	return near
}

func antiTerms(pod *core.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func (w *world) together(pod *core.Pod, node *core.Node) string {
	for _, term := range antiTerms(pod) {
		for _, other := range w.near(node, term.TopologyKey) {
			if about(pod, term, other) {
				return "anti-affinity"
			}
		}
	}
	for _, other := range w.pods {
		for _, term := range antiTerms(other) {
			if about(other, term, pod) && slices.Contains(w.near(node, term.TopologyKey), other) {
				return "another pod's anti-affinity"
			}
		}
	}
	if a := pod.Spec.Affinity; a == nil || a.PodAffinity == nil {
		return ""
	}
	term := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	if _, has := node.Labels[term.TopologyKey]; !has {
		return "affinity"
	}
	is := func(other *core.Pod) bool { return about(pod, term, other) }
	if slices.ContainsFunc(w.near(node, term.TopologyKey), is) {
		return ""
	}
	// The first pod of a group that wants to be together may be anywhere.
	anywhere := slices.ContainsFunc(w.pods, func(other *core.Pod) bool {
		at := w.nodes[slices.IndexFunc(w.nodes, func(n *core.Node) bool { return n.Name == other.Spec.NodeName })]
		_, labelled := at.Labels[term.TopologyKey]
		return labelled && is(other)
	})
	if !anywhere && is(pod) {
		return ""
	}
	return "affinity"
}

func (w *world) spread(pod *core.Pod, node *core.Node) string {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if _, has := node.Labels[c.TopologyKey]; !has {
			return "spread, no label"
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		domains := map[string]int{}
		for _, n := range w.nodes {
			if !takesPart(pod, c, n) {
				continue
			}
			domains[n.Labels[c.TopologyKey]] += 0
			for _, p := range w.on(n) {
				// Upstream matches no pods with an empty selector.
				nothing := c.LabelSelector != nil && len(c.LabelSelector.MatchLabels)+len(c.LabelSelector.MatchExpressions) == 0
				if p.Namespace == pod.Namespace && !nothing && matches(c.LabelSelector, p.Labels) {
					domains[n.Labels[c.TopologyKey]]++
				}
			}
		}
		least := 1 << 30
		for _, count := range domains {
			least = min(least, count)
		}
		if c.MinDomains != nil && len(domains) < int(*c.MinDomains) || len(domains) == 0 {
			least = 0
		}
		self := 0
		if matches(c.LabelSelector, pod.Labels) {
			self = 1
		}
		if domains[node.Labels[c.TopologyKey]]+self-least > int(c.MaxSkew) {
			return "spread"
		}
	}
	return ""
}

func takesPart(pod *core.Pod, c corev1.TopologySpreadConstraint, node *core.Node) bool {
	for _, all := range pod.Spec.TopologySpreadConstraints {
		if _, has := node.Labels[all.TopologyKey]; !has {
			return false
		}
	}
	if (c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor) && selected(pod, node) != "" {
		return false
	}
	unmarked := node.DeepCopy()
	unmarked.Spec.Unschedulable = false // only taints count
	return c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore || taints(pod, unmarked) == ""
}

// Whatever the filters precompute and update as pods come and go, their answers
// equal those of the plain rules.
func TestFiltersAgreeWithTheReference(t *testing.T) {
	p := defaultProfile(t, withNamespaces)
	taken, refused := 0, map[string]int{}
	for seed := range uint64(40) {
		d, w := dice{rand.New(rand.NewPCG(seed, 11))}, &world{}
		c, snapshot := cache.New(clock.RealClock{}, cache.DefaultExpiry), cache.NewSnapshot()
		for i := range 4 + d.IntN(12) {
			node := d.node(i)
			w.nodes = append(w.nodes, node)
			c.SetNode(node)
		}
		var kinds []*core.Pod
		for i := range 60 {
			pod := d.pod(i)
			if len(kinds) > 5 { // counts for one are kept for the next of its kind
				pod.Namespace, pod.Labels, pod.Spec = again(kinds[d.IntN(len(kinds))])
			} else {
				kinds = append(kinds, pod)
			}
			c.Update(snapshot)
			fits := agree(t, p, snapshot, w, pod, refused)
			if len(fits) > 0 {
				taken++
				bound := pod.DeepCopy()
				bound.Spec.NodeName = fits[d.IntN(len(fits))]
				w.pods = append(w.pods, bound)
				c.SetPod(bound)
			}
			if len(w.pods) > 0 && d.once(4) {
				gone := d.IntN(len(w.pods))
				c.RemovePod(w.pods[gone].UID)
				w.pods = slices.Delete(w.pods, gone, gone+1)
			}
			if t.Failed() {
				t.Fatalf("seed %d, pod %d: %+v", seed, i, pod.Spec)
			}
		}
	}
	t.Logf("%d pods found a node; refusals: %v", taken, refused)
	for _, rule := range []string{"pods", "cpu", "memory", "taint", "node selector", "node affinity", "port", "anti-affinity", "another pod's anti-affinity",
		"affinity", "spread", "spread, no label"} {
		if refused[rule] == 0 {
			t.Errorf("nothing was ever refused by %s: the test proves less than it says", rule)
		}
	}
}

// agree compares the answers for each node, and returns the nodes on which the
// pod fits.
func agree(t *testing.T, p *framework.Profile, snapshot *cache.Snapshot, w *world, pod *core.Pod, refused map[string]int) []string {
	t.Helper()
	state, info := framework.NewCycleState(nil), framework.NewPodInfo(pod)
	snapshot.Show(state)
	outcome, all := p.RunPreFilter(t.Context(), state, info)
	filters := p.ActiveFilters(state)
	var fits []string
	for _, node := range w.nodes {
		status := all
		if at, known := snapshot.Node(node.Name); !known {
			t.Errorf("the snapshot does not have %s", node.Name)
		} else if status.IsSuccess() {
			status = framework.RunFilters(t.Context(), filters, state, info, at)
			if outcome.LeavesOut(node.Name) {
				status = outcome.LeftOut()
			}
		}
		why := w.refusal(pod, node)
		if why == "" {
			fits = append(fits, node.Name)
		} else {
			refused[why]++
		}
		if status.IsSuccess() != (why == "") || !status.IsSuccess() && !status.IsRejected() {
			t.Errorf("node %s: the filters say %q (%s), the rules %q", node.Name, status.Reasons(), status.Plugin(), why)
		}
	}
	return fits
}
