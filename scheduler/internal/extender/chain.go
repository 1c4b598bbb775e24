package extender

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/scheduler/framework"
)

// Chain has all extenders in the order in which they are called: that of the
// configuration, ignorable ones last. A nil Chain has none. It is safe for
// concurrent use.
type Chain struct {
	extenders []*Extender
	logger    *zap.Logger
}

// NewChain returns a chain of the configured extenders, nil without any.
func NewChain(configs []configv1.Extender, logger *zap.Logger) (*Chain, error) {
	if len(configs) == 0 {
		return nil, nil
	}
	c := &Chain{logger: logger}
	var last []*Extender
	binder := false
	for i, config := range configs {
		e, err := newExtender(config)
		if err != nil {
			return nil, fmt.Errorf("extenders[%d].%w", i, err)
		}
		if binder && e.BindVerb != "" {
			return nil, fmt.Errorf("extenders[%d].bindVerb: only one extender can implement bind", i)
		}
		binder = binder || e.BindVerb != ""
		if e.Ignorable {
			last = append(last, e)
		} else {
			c.extenders = append(c.extenders, e)
		}
	}
	c.extenders = append(c.extenders, last...)
	return c, nil
}

// Empty reports whether there are no extenders.
func (c *Chain) Empty() bool { return c == nil || len(c.extenders) == 0 }

// asked are the extenders that have a verb and are interested in the pod.
func (c *Chain) asked(pod *core.Pod, verb func(*Extender) string) []*Extender {
	if c == nil {
		return nil
	}
	var asked []*Extender
	for _, e := range c.extenders {
		if verb(e) != "" && e.interested(pod) {
			asked = append(asked, e)
		}
	}
	return asked
}

// pass reports whether things go on without an extender that failed.
func (c *Chain) pass(e *Extender, pod *core.Pod, err error) bool {
	if e.Ignorable {
		c.logger.Warn("extender is passed over", daemon.PodFields(pod), zap.Error(err))
	}
	return e.Ignorable
}

// Filter returns the nodes that all extenders accept; refuse is called for the
// others.
func (c *Chain) Filter(ctx context.Context, pod *core.Pod, nodes []*framework.NodeInfo, refuse func(*framework.NodeInfo, *framework.Status)) ([]*framework.NodeInfo, error) {
	for _, e := range c.asked(pod, func(e *Extender) string { return e.FilterVerb }) {
		if len(nodes) == 0 {
			break
		}
		answer := &extenderv1.ExtenderFilterResult{}
		err := e.ask(ctx, e.FilterVerb, e.arguments(pod, nodes), answer)
		if err == nil && answer.Error != "" {
			err = fmt.Errorf("extender at %s: %s", e.URLPrefix, short(answer.Error))
		}
		var passed map[string]bool
		if err == nil {
			passed, err = e.passed(answer)
		}
		if err != nil {
			if c.pass(e, pod, err) {
				continue
			}
			return nil, err
		}
		kept := make([]*framework.NodeInfo, 0, len(passed))
		for _, node := range nodes {
			if passed[node.Name()] {
				kept = append(kept, node)
			} else {
				refuse(node, refusal(answer, node.Name()))
			}
		}
		nodes = kept
	}
	return nodes, nil
}

// arguments are the request body in the form that the extender understands.
func (e *Extender) arguments(pod *core.Pod, nodes []*framework.NodeInfo) *extenderv1.ExtenderArgs {
	args := &extenderv1.ExtenderArgs{Pod: pod}
	if e.NodeCacheCapable {
		names := make([]string, 0, len(nodes))
		for _, node := range nodes {
			names = append(names, node.Name())
		}
		args.NodeNames = &names
		return args
	}
	args.Nodes = &corev1.NodeList{Items: make([]corev1.Node, 0, len(nodes))}
	for _, node := range nodes {
		args.Nodes.Items = append(args.Nodes.Items, *node.Node)
	}
	return args
}

// passed are the names of the nodes that the extender lets through.
func (e *Extender) passed(answer *extenderv1.ExtenderFilterResult) (map[string]bool, error) {
	passed := map[string]bool{}
	switch {
	case e.NodeCacheCapable && answer.NodeNames != nil:
		for _, name := range *answer.NodeNames {
			passed[name] = true
		}
	case answer.Nodes != nil:
		for i := range answer.Nodes.Items {
			passed[answer.Nodes.Items[i].Name] = true
		}
	default:
		return nil, fmt.Errorf("extender at %s: the answer names no nodes, not even none", e.URLPrefix)
	}
	return passed, nil
}

// short cuts an extender's message, because the pod's status contains it and is
// written at each attempt.
func short(text string) string { return fmt.Sprintf("%.1024s", text) }

func refusal(answer *extenderv1.ExtenderFilterResult, node string) *framework.Status {
	if reason, never := answer.FailedAndUnresolvableNodes[node]; never {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, short(reason)).By(Name)
	}
	reason := answer.FailedNodes[node]
	if reason == "" {
		reason = "node(s) were refused by an extender"
	}
	return framework.NewStatus(framework.Unschedulable, short(reason)).By(Name)
}

// Prioritize passes each extender's scores to take, on the plugins' scale and
// weighted. An extender that fails gives none.
func (c *Chain) Prioritize(ctx context.Context, pod *core.Pod, nodes []*framework.NodeInfo, take func(scores map[string]int64, weight int64)) {
	for _, e := range c.asked(pod, func(e *Extender) string { return e.PrioritizeVerb }) {
		var answer extenderv1.HostPriorityList
		if err := e.ask(ctx, e.PrioritizeVerb, e.arguments(pod, nodes), &answer); err != nil {
			c.logger.Warn("extender does not rank nodes", daemon.PodFields(pod), zap.Error(err))
			continue
		}
		scores := make(map[string]int64, len(answer))
		for _, host := range answer {
			score := min(max(host.Score, extenderv1.MinExtenderPriority), extenderv1.MaxExtenderPriority)
			scores[host.Host] = score * (framework.MaxNodeScore / extenderv1.MaxExtenderPriority)
		}
		take(scores, e.Weight)
	}
}

// Bind lets the binding extender bind the pod; bound is false if there is none,
// or if an ignorable one failed.
func (c *Chain) Bind(ctx context.Context, pod *core.Pod, node string) (bound bool, err error) {
	binders := c.asked(pod, func(e *Extender) string { return e.BindVerb })
	if len(binders) == 0 {
		return false, nil
	}
	e, answer := binders[0], &extenderv1.ExtenderBindingResult{}
	err = e.ask(ctx, e.BindVerb, &extenderv1.ExtenderBindingArgs{
		PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: pod.UID, Node: node,
	}, answer)
	if err == nil && answer.Error != "" {
		err = fmt.Errorf("extender at %s: %s", e.URLPrefix, short(answer.Error))
	}
	if err != nil && c.pass(e, pod, err) {
		return false, nil
	}
	return true, err
}

// Victims are the pods that would have to leave a node, the most important
// first, and how many disruption budgets that breaks.
type Victims struct {
	Pods       []*framework.PodInfo
	Violations int
}

// Preempt returns the candidates, by node, and the victims that the extenders
// leave.
func (c *Chain) Preempt(ctx context.Context, pod *core.Pod, candidates map[string]Victims) (map[string]Victims, error) {
	for _, e := range c.asked(pod, func(e *Extender) string { return e.PreemptVerb }) {
		if len(candidates) == 0 {
			break
		}
		answer := &extenderv1.ExtenderPreemptionResult{}
		err := e.ask(ctx, e.PreemptVerb, e.preemption(pod, candidates), answer)
		var left map[string]Victims
		if err == nil {
			left, err = remaining(candidates, answer)
		}
		switch {
		case err == nil:
			candidates = left
		case !c.pass(e, pod, err):
			return nil, err
		}
	}
	return candidates, nil
}

func (e *Extender) preemption(pod *core.Pod, candidates map[string]Victims) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pod}
	if e.NodeCacheCapable {
		args.NodeNameToMetaVictims = map[string]*extenderv1.MetaVictims{}
	} else {
		args.NodeNameToVictims = map[string]*extenderv1.Victims{}
	}
	for node, victims := range candidates {
		whole := &extenderv1.Victims{NumPDBViolations: int64(victims.Violations)}
		meta := &extenderv1.MetaVictims{NumPDBViolations: int64(victims.Violations)}
		for _, victim := range victims.Pods {
			whole.Pods = append(whole.Pods, victim.Pod)
			meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(victim.Pod.UID)})
		}
		if e.NodeCacheCapable {
			args.NodeNameToMetaVictims[node] = meta
		} else {
			args.NodeNameToVictims[node] = whole
		}
	}
	return args
}

// remaining are the candidates that the extender names, with the victims that
// it names. One without victims is dropped: the pod did not fit there.
func remaining(candidates map[string]Victims, answer *extenderv1.ExtenderPreemptionResult) (map[string]Victims, error) {
	left := map[string]Victims{}
	for node, named := range answer.NodeNameToMetaVictims {
		before, known := candidates[node]
		if !known || named == nil {
			return nil, errors.New("extender names a node that was no candidate: " + node)
		}
		chosen := map[types.UID]bool{}
		for _, pod := range named.Pods {
			chosen[types.UID(pod.UID)] = true
		}
		victims := Victims{Violations: int(named.NumPDBViolations)}
		for _, pod := range before.Pods {
			if chosen[pod.Pod.UID] {
				victims.Pods = append(victims.Pods, pod)
			}
		}
		if len(victims.Pods) != len(chosen) {
			return nil, errors.New("extender names a victim that was none on node " + node)
		}
		if len(victims.Pods) > 0 {
			left[node] = victims
		}
	}
	return left, nil
}
