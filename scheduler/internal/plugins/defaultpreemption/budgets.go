package defaultpreemption

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/scheduler/framework"
)

// budgets are the disruption budgets that a search has asked for.
type budgets struct {
	of   func(namespace string) []*policyv1.PodDisruptionBudget
	seen map[string][]budget
}

type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

func newBudgets(of func(namespace string) []*policyv1.PodDisruptionBudget) *budgets {
	return &budgets{of: of, seen: map[string][]budget{}}
}

func (b *budgets) in(namespace string) []budget {
	if found, known := b.seen[namespace]; known {
		return found
	}
	var found []budget
	for _, pdb := range b.of(namespace) {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil {
			continue // it is about no pod, as one without a selector, which matches none
		}
		found = append(found, budget{PodDisruptionBudget: pdb, selector: selector})
	}
	b.seen[namespace] = found
	return found
}

// filterPodsWithPDBViolation divides pods, in their order, into those whose eviction
// would violate a budget and those whose would not, counting all against the budgets.
func (b *budgets) filterPodsWithPDBViolation(pods []*framework.PodInfo) (violating, others []*framework.PodInfo) {
	var left map[*policyv1.PodDisruptionBudget]int32
	for _, pod := range pods {
		breaks := false
		budgets := b.in(pod.Pod.Namespace)
		if left == nil && len(budgets) > 0 {
			left = map[*policyv1.PodDisruptionBudget]int32{}
		}
		for _, pdb := range budgets {
			if len(pod.Pod.Labels) == 0 || !pdb.selector.Matches(labels.Set(pod.Pod.Labels)) {
				continue
			}
			if _, counted := pdb.Status.DisruptedPods[pod.Pod.Name]; counted {
				continue // it is on its way already
			}
			allowed, known := left[pdb.PodDisruptionBudget]
			if !known {
				allowed = pdb.Status.DisruptionsAllowed
			}
			left[pdb.PodDisruptionBudget] = allowed - 1
			breaks = breaks || allowed <= 0
		}
		if breaks {
			violating = append(violating, pod)
		} else {
			others = append(others, pod)
		}
	}
	return violating, others
}
