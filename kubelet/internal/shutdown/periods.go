package shutdown

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kctl/proto/core"
)

// Period is how long pods of a priority get; it applies up to the priority of the next
// Period.
type Period struct {
	Priority int32
	Grace    time.Duration
}

// Periods come from a KubeletConfiguration: shutdownGracePeriod with
// shutdownGracePeriodCriticalPods, or shutdownGracePeriodByPodPriority. None
// means that the system's own shutdown ends the pods.
func Periods(all, critical time.Duration, byPriority []Period) ([]Period, error) {
	if len(byPriority) > 0 {
		if all != 0 || critical != 0 {
			return nil, fmt.Errorf("shutdownGracePeriodByPodPriority and shutdownGracePeriod, shutdownGracePeriodCriticalPods can't both be set")
		}
		sorted := slices.SortedStableFunc(slices.Values(byPriority), func(a, b Period) int { return cmp.Compare(a.Priority, b.Priority) })
		for i, p := range sorted {
			if p.Grace < 0 {
				return nil, fmt.Errorf("shutdownGracePeriodByPodPriority: priority %d has a negative period", p.Priority)
			}
			if i > 0 && p.Priority == sorted[i-1].Priority {
				return nil, fmt.Errorf("shutdownGracePeriodByPodPriority: priority %d is duplicated", p.Priority)
			}
		}
		return sorted, nil
	}
	for name, d := range map[string]time.Duration{"shutdownGracePeriod": all, "shutdownGracePeriodCriticalPods": critical} {
		if d < 0 || d > 0 && d < time.Second {
			return nil, fmt.Errorf("%s=%s must be zero or one second at least", name, d)
		}
	}
	if critical > all {
		return nil, fmt.Errorf("shutdownGracePeriodCriticalPods=%s is part of shutdownGracePeriod=%s and can't be longer", critical, all)
	}
	if all == 0 {
		return nil, nil
	}
	return []Period{{0, all - critical}, {core.SystemCriticalPriority, critical}}, nil
}

// total is how long the system's shutdown has to wait.
func total(periods []Period) time.Duration {
	sum := time.Duration(0)
	for _, p := range periods {
		sum += p.Grace
	}
	return sum
}

// groupByPriority assigns each pod to the period with the highest priority that is not
// above the pod's own; pods below all periods go first, with the lowest.
func groupByPriority(periods []Period, pods []*core.Pod) [][]*core.Pod {
	groups := make([][]*core.Pod, len(periods))
	for _, pod := range pods {
		priority := int32(0)
		if pod.Spec.Priority != nil {
			priority = *pod.Spec.Priority
		}
		at := 0
		for i, p := range periods {
			if p.Priority <= priority {
				at = i
			}
		}
		groups[at] = append(groups[at], pod)
	}
	return groups
}
