package podsecurity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// How many pods of a namespace are checked, and for how long, before its change
// is admitted: upstream's.
const (
	maxPods = 3000
	maxTime = time.Second
)

// warnOfPods warns about pods that a level would not admit.
func (p *Plugin) warnOfPods(ctx context.Context, namespace string, level api.LevelVersion) {
	until := p.clock.Now().Add(maxTime)
	list, err := p.pods.List(ctx, namespace, registry.ListOptions{ResourceVersion: "0"})
	if err != nil {
		request.Warn(ctx, "failed to list pods while checking new PodSecurity enforce level")
		return
	}
	found := violations{}
	checked := 0
	for _, item := range list.Items {
		if checked == maxPods || p.clock.Now().After(until) {
			break
		}
		checked++
		obj, err := p.pods.Decode(item)
		if err != nil {
			continue
		}
		pod := obj.(*core.Pod)
		if p.exempt.runtimeClass(&pod.Spec) {
			continue
		}
		result := policy.AggregateCheckResults(p.evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			found.add(result.ForbiddenReason(), pod.Name)
		}
	}
	if checked < len(list.Items) {
		request.Warn(ctx, fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods",
			checked, len(list.Items)))
	}
	if len(found) == 0 {
		return
	}
	request.Warn(ctx, fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, level.String()))
	for _, line := range found.lines() {
		request.Warn(ctx, line)
	}
}

// violations are pods by the reason for which a level does not admit them. For
// each reason, only the first pod is named; the others are counted.
type violations map[string]violators

type violators struct {
	first string
	count int
}

func (v violations) add(reason, pod string) {
	who := v[reason]
	if who.count++; who.count == 1 || pod < who.first {
		who.first = pod
	}
	v[reason] = who
}

func (v violations) lines() []string {
	var lines []string
	for reason, who := range v {
		others := ""
		switch n := who.count - 1; n {
		case 0:
		case 1:
			others = " (and 1 other pod)"
		default:
			others = fmt.Sprintf(" (and %d other pods)", n)
		}
		lines = append(lines, who.first+others+": "+reason)
	}
	slices.Sort(lines)
	return lines
}
