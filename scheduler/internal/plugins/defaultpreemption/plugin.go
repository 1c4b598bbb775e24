package defaultpreemption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/nominator"
)

// Name of the plugin in configurations and metrics.
const Name = "DefaultPreemption"

// Options are the plugin's arguments: how many candidate nodes are searched for,
// as a percentage of the nodes and as an absolute minimum. Upstream's defaults
// are 10 and 100.
type Options struct {
	MinCandidateNodesPercentage int
	MinCandidateNodesAbsolute   int
}

// DefaultOptions are upstream's.
var DefaultOptions = Options{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}

// Executor evicts pods and returns at once. A pod that can't be evicted is noted
// as left, so that the next attempt at the preemptor looks again.
type Executor interface {
	Evict(preemptor *core.Pod, victims []*core.Pod, node string)
}

// Services are what the plugin works with.
type Services struct {
	Nominator *nominator.Nominator
	Executor  Executor
	// Budgets are the disruption budgets of a namespace.
	Budgets func(namespace string) []*policyv1.PodDisruptionBudget
	// Extenders may take candidates and victims away; may be nil.
	Extenders *extender.Chain
	// Activate is called for pods that have lost their nomination; may be nil.
	Activate func(uid types.UID)
	// Observe is called for each attempt with the number of victims; may be nil.
	Observe func(victims int)
}

// Plugin implements PostFilter.
type Plugin struct {
	options  Options
	services Services
	random   func(n int) int
}

// New returns the plugin.
func New(options Options, services Services) *Plugin {
	return &Plugin{options: options, services: services, random: rand.IntN}
}

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// PostFilter implements framework.PostFilter.
func (p *Plugin) PostFilter(ctx context.Context, state *framework.CycleState, pod *framework.PodInfo,
	refused framework.Refused) (string, *framework.Status) {
	best, status := p.preempt(ctx, state, pod, refused)
	victims := 0
	if best != nil {
		victims = len(best.victims)
		p.prepareCandidate(pod, best)
	}
	if p.services.Observe != nil {
		p.services.Observe(victims)
	}
	if best == nil {
		return "", status
	}
	return best.node.Name(), framework.NewStatus(framework.Success,
		fmt.Sprintf("preemption: found a potential placement for pod on node %s, preempting %d victims", best.node.Name(), victims))
}

// preempt chooses the node where making room costs least. Without one the status says
// why.
func (p *Plugin) preempt(ctx context.Context, state *framework.CycleState, pod *framework.PodInfo,
	refused framework.Refused) (*candidate, *framework.Status) {
	if why := p.ineligible(pod, state, refused); why != "" {
		return nil, framework.NewStatus(framework.Unschedulable, "preemption: "+why)
	}
	search := &search{Plugin: p, refused: refused, state: state, pod: pod, budgets: newBudgets(p.services.Budgets)}
	candidates, err := search.findCandidates(ctx)
	if err == nil {
		candidates, err = search.callExtenders(ctx, candidates)
	}
	if err != nil {
		return nil, framework.AsError(fmt.Errorf("preemption: %w", err))
	}
	if len(candidates) == 0 {
		p.services.Nominator.Delete(pod.Pod.UID) // the room can't be kept for it
		return nil, framework.NewStatus(framework.Unschedulable, "preemption: "+search.message())
	}
	best := candidates[0]
	for _, c := range candidates[1:] {
		if c.better(best) {
			best = c
		}
	}
	return best, nil
}

// ineligible says why a pod may not, or need not, evict others.
func (p *Plugin) ineligible(pod *framework.PodInfo, state *framework.CycleState, refused framework.Refused) string {
	if ptr.Deref(pod.Pod.Spec.PreemptionPolicy, "") == corev1.PreemptNever {
		return "not eligible due to preemptionPolicy=Never."
	}
	nominated := p.services.Nominator.Of(pod.Pod.UID)
	if nominated == "" {
		return ""
	}
	node := state.Node(nominated)
	if node == nil || !slices.Contains(refused.Nodes, node) {
		return "" // its victims would leave in vain
	}
	for _, other := range node.Pods {
		if other.Priority >= pod.Priority {
			continue
		}
		if other.Pod.DeletionTimestamp != nil && disrupted(other.Pod) || p.services.Nominator.Leaving(other.Pod.UID) {
			return "not eligible due to a terminating pod on the nominated node."
		}
	}
	return ""
}

// disrupted reports whether a pod ends because a scheduler asked it to.
func disrupted(pod *core.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// prepareCandidate evicts the victims and nominates the pod to the node.
func (p *Plugin) prepareCandidate(pod *framework.PodInfo, best *candidate) {
	var victims []*core.Pod
	for _, v := range best.victims {
		if v.Pod.DeletionTimestamp == nil { // else it leaves already
			victims = append(victims, v.Pod)
			p.services.Nominator.AskToLeave(v.Pod.UID)
		}
	}
	if len(victims) > 0 {
		p.clearLowerNominations(pod, best.node.Name())
	}
	p.services.Nominator.Set(pod.Pod, best.node.Name())
	p.services.Executor.Evict(pod.Pod, victims, best.node.Name())
}

// clearLowerNominations withdraws the nominations to a node of pods of lower priority,
// which then look elsewhere.
func (p *Plugin) clearLowerNominations(pod *framework.PodInfo, node string) {
	for _, other := range p.services.Nominator.On(node) {
		if other.Priority >= pod.Priority {
			continue
		}
		p.services.Nominator.Delete(other.Pod.UID)
		if p.services.Activate != nil {
			p.services.Activate(other.Pod.UID)
		}
	}
}

// message says why no node could be made to fit, in upstream's words.
func (s *search) message() string {
	if s.found > 0 { // and the extenders left none of them
		return "no candidate node for preemption"
	}
	all := len(s.state.Nodes)
	reasons := map[string]int{"No preemption victims found for incoming pod": s.noVictims}
	if others := all - len(s.refused.Nodes); others > 0 {
		reasons["Preemption is not helpful for scheduling"] = others
	}
	for reason, count := range s.reasons {
		reasons[reason] += count
	}
	var counted []string
	for reason, count := range reasons {
		if count > 0 {
			counted = append(counted, fmt.Sprintf("%d %s", count, reason))
		}
	}
	slices.Sort(counted)
	return fmt.Sprintf("0/%d nodes are available: %s.", all, strings.Join(counted, ", "))
}
