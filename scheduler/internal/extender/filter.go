package extender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Filter returns the nodes that all extenders accept; refuse is called for the
// others.
func (c *Chain) Filter(ctx context.Context, pod *core.Pod, nodes []*framework.NodeInfo,
	refuse func(*framework.NodeInfo, *framework.Status)) ([]*framework.NodeInfo, error) {
	for _, e := range c.asked(pod, func(e *Extender) string { return e.FilterVerb }) {
		if len(nodes) == 0 {
			break
		}
		answer := &filterResult{}
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

// filterResult is the part of an ExtenderFilterResult that is used. Of nodes it is the
// name: whole ones would take hundreds of times the memory of an answer with many nodes
// that are empty.
type filterResult struct {
	Nodes *struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	NodeNames                               *[]string
	FailedNodes, FailedAndUnresolvableNodes extenderv1.FailedNodesMap
	Error                                   string
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
func (e *Extender) passed(answer *filterResult) (map[string]bool, error) {
	passed := map[string]bool{}
	switch {
	case e.NodeCacheCapable && answer.NodeNames != nil:
		for _, name := range *answer.NodeNames {
			passed[name] = true
		}
	case answer.Nodes != nil:
		for i := range answer.Nodes.Items {
			passed[answer.Nodes.Items[i].Metadata.Name] = true
		}
	default:
		return nil, fmt.Errorf("extender at %s: the answer has no list of nodes, not even an empty one", e.URLPrefix)
	}
	return passed, nil
}

// short cuts an extender's message, because the pod's status contains it and is
// written at each attempt.
func short(text string) string { return fmt.Sprintf("%.1024s", text) }

func refusal(answer *filterResult, node string) *framework.Status {
	if reason, never := answer.FailedAndUnresolvableNodes[node]; never {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, short(reason)).By(Name)
	}
	reason := answer.FailedNodes[node]
	if reason == "" {
		reason = "node(s) were refused by an extender"
	}
	return framework.NewStatus(framework.Unschedulable, short(reason)).By(Name)
}
