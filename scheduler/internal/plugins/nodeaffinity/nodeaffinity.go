// Package nodeaffinity is the plugin NodeAffinity: a pod's nodeSelector and
// required node affinity decide which nodes it may run on, its preferred terms
// rank them, and a profile can add an affinity to all of its pods. The profile
// builds it; selectors are matched by upstream's component-helpers.
package nodeaffinity

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "NodeAffinity"

const (
	requiredKey  framework.StateKey = Name + "/required"
	preferredKey framework.StateKey = Name + "/preferred"
)

var (
	refusedByPod = framework.NewStatus(framework.UnschedulableAndUnresolvable,
		"node(s) didn't match Pod's node affinity/selector").By(Name)
	refusedByProfile = framework.NewStatus(framework.UnschedulableAndUnresolvable,
		"node(s) didn't match scheduler-enforced node affinity").By(Name)
	contradicting = framework.NewStatus(framework.UnschedulableAndUnresolvable,
		"pod affinity terms conflict").By(Name)
	skip = framework.NewStatus(framework.Skip)
)

// Plugin implements PreFilter, Filter, Sign, PreScore, Score and ScoreExtensions.
type Plugin struct {
	addedRequired  *nodeaffinity.NodeSelector
	addedPreferred *nodeaffinity.PreferredSchedulingTerms
}

// New returns the plugin; added is the profile's own affinity, or nil.
func New(added *corev1.NodeAffinity) (*Plugin, error) {
	p := &Plugin{}
	if added == nil {
		return p, nil
	}
	var err error
	if added.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		p.addedRequired, err = nodeaffinity.NewNodeSelector(added.RequiredDuringSchedulingIgnoredDuringExecution)
		if err != nil {
			return nil, fmt.Errorf("addedAffinity, required terms: %w", err)
		}
	}
	if terms := added.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		p.addedPreferred, err = nodeaffinity.NewPreferredSchedulingTerms(terms)
		if err != nil {
			return nil, fmt.Errorf("addedAffinity, preferred terms: %w", err)
		}
	}
	return p, nil
}

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// PreFilter parses the pod's terms, and returns the nodes that they name, if they do.
func (p *Plugin) PreFilter(_ context.Context, state *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	terms := framework.RequiredNodeTerms(pod.Pod)
	if terms == nil && p.addedRequired == nil && len(pod.Pod.Spec.NodeSelector) == 0 {
		return nil, skip
	}
	state.Write(requiredKey, nodeaffinity.GetRequiredNodeAffinity(pod.Pod))
	if terms == nil {
		return nil, nil
	}
	names := namedNodes(terms.NodeSelectorTerms)
	if names != nil && len(names) == 0 {
		return nil, contradicting
	}
	return &framework.PreFilterResult{NodeNames: names}, nil
}

// namedNodes are the only nodes that terms can match, if every one of them
// names nodes (daemon pods do); nil if any term does not.
func namedNodes(terms []corev1.NodeSelectorTerm) map[string]struct{} {
	names := map[string]struct{}{}
	for _, term := range terms {
		var allowed map[string]struct{}
		for _, field := range term.MatchFields {
			if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			both := map[string]struct{}{}
			for _, value := range field.Values {
				if _, ok := allowed[value]; ok || allowed == nil {
					both[value] = struct{}{}
				}
			}
			allowed = both
		}
		if allowed == nil {
			return nil
		}
		for name := range allowed {
			names[name] = struct{}{}
		}
	}
	return names
}

// Filter implements framework.Filter.
func (p *Plugin) Filter(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) *framework.Status {
	if p.addedRequired != nil && !p.addedRequired.Match(node.Node) {
		return refusedByProfile
	}
	required, ok := state.Read(requiredKey).(nodeaffinity.RequiredNodeAffinity)
	if !ok {
		required = nodeaffinity.GetRequiredNodeAffinity(pod.Pod)
	}
	// A term that cannot be parsed matches nothing, as upstream has it.
	if match, _ := required.Match(node.Node); !match {
		return refusedByPod
	}
	return nil
}

// SignPod implements framework.Sign.
func (*Plugin) SignPod(pod *framework.PodInfo, to *framework.Signature) {
	selector := pod.Pod.Spec.NodeSelector
	to.Int(int64(len(selector)))
	for _, label := range slices.Sorted(maps.Keys(selector)) {
		to.String(label)
		to.String(selector[label])
	}
	terms := framework.RequiredNodeTerms(pod.Pod)
	if terms == nil {
		to.Int(-1)
		return
	}
	to.Int(int64(len(terms.NodeSelectorTerms)))
	for i := range terms.NodeSelectorTerms {
		for _, requirements := range [...][]corev1.NodeSelectorRequirement{terms.NodeSelectorTerms[i].MatchExpressions,
			terms.NodeSelectorTerms[i].MatchFields} {
			to.Int(int64(len(requirements)))
			for _, r := range requirements {
				to.String(r.Key)
				to.String(string(r.Operator))
				to.Strings(r.Values)
			}
		}
	}
}

// PreScore parses the pod's preferred terms, and skips where there are none.
func (p *Plugin) PreScore(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	_ []*framework.NodeInfo) *framework.Status {
	preferred, err := preferredBy(pod.Pod)
	if err != nil {
		return framework.AsError(err)
	}
	if preferred == nil && p.addedPreferred == nil {
		return skip
	}
	state.Write(preferredKey, preferred)
	return nil
}

// preferredBy parses the pod's preferred terms; nil if it has none.
func preferredBy(pod *core.Pod) (*nodeaffinity.PreferredSchedulingTerms, error) {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil, nil
	}
	preferred, err := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return nil, fmt.Errorf("preferred node affinity: %w", err)
	}
	return preferred, nil
}

// Score sums the weights of the preferred terms that match.
func (p *Plugin) Score(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	preferred, prepared := state.Read(preferredKey).(*nodeaffinity.PreferredSchedulingTerms)
	if !prepared { // a profile may disable PreScore, and have Score
		var err error
		if preferred, err = preferredBy(pod.Pod); err != nil {
			return 0, framework.AsError(err)
		}
	}
	var score int64
	if p.addedPreferred != nil {
		score += p.addedPreferred.Score(node.Node)
	}
	if preferred != nil {
		score += preferred.Score(node.Node)
	}
	return score, nil
}

// NormalizeScore implements framework.ScoreExtensions.
func (*Plugin) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *framework.PodInfo, scores []int64) *framework.Status {
	framework.NormalizeByMax(scores, false)
	return nil
}

// EventsToRegister implements framework.EnqueueExtensions.
func (p *Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{
		Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeLabel,
		QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
			return p.wants(pod.Pod, event.NewNode) && (event.OldNode == nil || !p.wants(pod.Pod, event.OldNode))
		},
	}}
}

// wants reports whether the pod may be on the node; one whose terms can't be
// parsed may.
func (p *Plugin) wants(pod *core.Pod, node *core.Node) bool {
	if p.addedRequired != nil && !p.addedRequired.Match(node) {
		return false
	}
	match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return match || err != nil
}
