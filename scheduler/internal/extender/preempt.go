package extender

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

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
			return nil, errors.New("extender returned a node that was not a candidate: " + node)
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
			return nil, errors.New("extender returned a victim that was not proposed on node " + node)
		}
		if len(victims.Pods) > 0 {
			left[node] = victims
		}
	}
	return left, nil
}
