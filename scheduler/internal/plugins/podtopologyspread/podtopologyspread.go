package podtopologyspread

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "PodTopologySpread"

const (
	filterKey framework.StateKey = Name + "/filter"
	scoreKey  framework.StateKey = Name + "/score"
)

var (
	refusedSkew = framework.NewStatus(framework.Unschedulable,
		"node(s) didn't match pod topology spread constraints").By(Name)
	refusedLabel = framework.NewStatus(framework.UnschedulableAndUnresolvable,
		"node(s) didn't match pod topology spread constraints (missing required label)").By(Name)
	skip = framework.NewStatus(framework.Skip)
)

// Options say how pods without constraints of their own are spread.
type Options struct {
	// Defaults are their constraints, without selectors. System uses upstream's
	// instead, which also apply to nodes that lack one of the labels.
	Defaults []corev1.TopologySpreadConstraint
	System   bool
	// Selector selects the pods that belong together with one, nil if none do.
	Selector func(pod *core.Pod) labels.Selector
}

// systemDefaults are upstream's: they only rank nodes.
var systemDefaults = []corev1.TopologySpreadConstraint{
	{TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, MaxSkew: 3},
	{TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, MaxSkew: 5},
}

// Plugin implements PreFilter with its extensions, Filter, PreScore, Score and ScoreExtensions.
type Plugin struct{ options Options }

// New returns the plugin.
func New(options Options) *Plugin {
	if options.System {
		options.Defaults = systemDefaults
	}
	return &Plugin{options: options}
}

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// constraint is one of the pod's constraints, parsed.
type constraint struct {
	key         string
	maxSkew     int64
	minDomains  int64
	selector    labels.Selector
	honorTaints bool
	honorNodes  bool // the pod's own node affinity and selector
}

// constraints are those of one kind that count for the pod: its own, or else
// the defaults.
func (p *Plugin) constraints(pod *core.Pod, action corev1.UnsatisfiableConstraintAction) ([]constraint, error) {
	if len(pod.Spec.TopologySpreadConstraints) == 0 {
		return p.defaults(pod, action), nil
	}
	var parsed []constraint
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != action {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("topologySpreadConstraints[%d].labelSelector: %w", i, err)
		}
		if selector, err = restrict(selector, pod.Labels, c.MatchLabelKeys); err != nil {
			return nil, fmt.Errorf("topologySpreadConstraints[%d].matchLabelKeys: %w", i, err)
		}
		parsed = append(parsed, newConstraint(c, selector))
	}
	return parsed, nil
}

// restrict narrows a selector to pods that share podLabels' values of keys. The API
// server has usually done so already; doing it again changes nothing.
func restrict(selector labels.Selector, podLabels map[string]string, keys []string) (labels.Selector, error) {
	var all labels.Requirements
	for _, key := range keys {
		value, has := podLabels[key]
		if !has {
			continue
		}
		requirement, err := labels.NewRequirement(key, selection.In, []string{value})
		if err != nil {
			return nil, err
		}
		all = append(all, *requirement)
	}
	if len(all) == 0 {
		return selector, nil
	}
	return selector.Add(all...), nil // at once: each Add copies and sorts what is there
}

// defaults are the profile's constraints of one kind, for a pod that belongs
// together with others.
func (p *Plugin) defaults(pod *core.Pod, action corev1.UnsatisfiableConstraintAction) []constraint {
	var parsed []constraint
	var selector labels.Selector
	for i := range p.options.Defaults {
		c := &p.options.Defaults[i]
		if c.WhenUnsatisfiable != action {
			continue
		}
		if selector == nil {
			if selector = p.options.Selector(pod); selector == nil {
				return nil
			}
		}
		parsed = append(parsed, newConstraint(c, selector))
	}
	return parsed
}

func newConstraint(c *corev1.TopologySpreadConstraint, selector labels.Selector) constraint {
	return constraint{
		key:         c.TopologyKey,
		maxSkew:     int64(c.MaxSkew),
		minDomains:  int64(ptr.Deref(c.MinDomains, 1)),
		selector:    selector,
		honorNodes:  ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor,
		honorTaints: ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor,
	}
}

// counts reports whether the constraint's policies let node take part.
func (c *constraint) counts(pod *core.Pod, own nodeaffinity.RequiredNodeAffinity, node *core.Node) bool {
	if c.honorNodes {
		if match, _ := own.Match(node); !match {
			return false
		}
	}
	return !c.honorTaints || framework.ToleratesAll(pod, node.Spec.Taints)
}

// matching counts the pods on node that the constraint is about.
func (c *constraint) matching(namespace string, node *framework.NodeInfo) int64 {
	var n int64
	for _, p := range node.Pods {
		if c.isAbout(namespace, p.Pod) {
			n++
		}
	}
	return n
}

// isAbout reports whether the constraint counts a pod on a node. Pods that are
// being deleted no longer count. An empty selector counts none, as upstream,
// although the pod itself counts.
func (c *constraint) isAbout(namespace string, pod *core.Pod) bool {
	return pod.Namespace == namespace && pod.DeletionTimestamp == nil && !c.selector.Empty() && c.selector.Matches(labels.Set(pod.Labels))
}

func hasAll(node *core.Node, constraints []constraint) bool {
	for i := range constraints {
		if _, has := node.Labels[constraints[i].key]; !has {
			return false
		}
	}
	return true
}

// filterState is what PreFilter prepares: one for each required constraint.
type filterState struct {
	constraints   []constraint
	distributions []distribution
	own           nodeaffinity.RequiredNodeAffinity
}

// Clone implements framework.Cloner.
func (s *filterState) Clone() any {
	c := *s
	c.distributions = slices.Clone(s.distributions)
	for i := range c.distributions {
		c.distributions[i].pods = s.distributions[i].pods.Clone()
	}
	return &c
}

// AddPod implements framework.PreFilterExtensions.
func (*Plugin) AddPod(_ context.Context, state *framework.CycleState, pod, added *framework.PodInfo,
	node *framework.NodeInfo) *framework.Status {
	count(state, pod, added, node, 1)
	return nil
}

// RemovePod implements framework.PreFilterExtensions.
func (*Plugin) RemovePod(_ context.Context, state *framework.CycleState, pod, removed *framework.PodInfo,
	node *framework.NodeInfo) *framework.Status {
	count(state, pod, removed, node, -1)
	return nil
}

// count counts other in or out where it is one of those that PreFilter counted.
func count(state *framework.CycleState, pod, other *framework.PodInfo, node *framework.NodeInfo, by int64) {
	s, ok := state.Read(filterKey).(*filterState)
	if !ok || !hasAll(node.Node, s.constraints) {
		return
	}
	for i := range s.constraints {
		c := &s.constraints[i]
		if c.isAbout(pod.Pod.Namespace, other.Pod) && c.counts(pod.Pod, s.own, node.Node) {
			s.distributions[i].add(node.Node.Labels[c.key], by)
		}
	}
}

// PreFilter counts pods by domain.
func (p *Plugin) PreFilter(_ context.Context, state *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	required, err := p.constraints(pod.Pod, corev1.DoNotSchedule)
	if err != nil {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, err.Error()).By(Name)
	}
	if len(required) == 0 {
		return nil, skip
	}
	own := nodeaffinity.GetRequiredNodeAffinity(pod.Pod)
	s := &filterState{constraints: required, own: own}
	tallies := newTallies(state, pod.Pod, own, required, true)
	for i := range required {
		s.distributions = append(s.distributions, newDistribution(&required[i], pod.Pod, tallies))
	}
	state.Write(filterKey, s)
	return nil, nil
}

// Filter implements framework.Filter.
func (*Plugin) Filter(_ context.Context, state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	s, ok := state.Read(filterKey).(*filterState)
	if !ok {
		return framework.Unprepared(Name)
	}
	for i := range s.constraints {
		c := &s.constraints[i]
		domain, has := node.Node.Labels[c.key]
		if !has {
			return refusedLabel
		}
		if s.distributions[i].skew(domain) > c.maxSkew {
			return refusedSkew
		}
	}
	return nil
}
