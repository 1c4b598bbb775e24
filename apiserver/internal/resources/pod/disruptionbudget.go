package pod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/status"
	"kctl/proto/core"
)

const (
	// maxDisrupted bounds a budget's evicted pods whose deletion its loop has not
	// seen yet; upstream's.
	maxDisrupted = 2000
	// budgetRetrySeconds is how long to wait for a new budget.
	budgetRetrySeconds = 10
)

// takeFromBudget charges the eviction of a pod to the pod's disruption budget,
// if there is one (Kubernetes docs, "API-initiated Eviction"). unready: nothing was
// charged, since the pod is not ready, and that holds only for as long as it is not.
func (e *evictions) takeFromBudget(ctx context.Context, pod *core.Pod, dryRun []string) (unready bool, err error) {
	switch {
	case core.Ended(pod.Status.Phase), pod.DeletionTimestamp != nil: // it does not come back
		return false, nil
	case pod.Status.Phase == corev1.PodPending:
		return true, nil
	}
	budget, err := e.budgetOf(ctx, pod)
	if err != nil || budget == nil {
		return false, err
	}
	if !isConditionTrue(&pod.Status, corev1.PodReady) && allowsUnhealthyEviction(budget) {
		return true, nil
	}
	var refused error
	_, _, err = e.budgets.Update(ctx, registry.Target{Namespace: budget.Namespace, Name: budget.Name, Subresource: "status"},
		func(current core.Object) (core.Object, error) {
			b := current.(*policyv1.PodDisruptionBudget)
			refused = e.recordDisruption(b, pod.Name)
			return b, refused
		}, registry.Admission{FieldManager: registry.ServerManager}, &metav1.UpdateOptions{DryRun: dryRun})
	if refused != nil {
		return false, refused
	}
	if apierrors.IsNotFound(err) {
		return false, nil // no one holds to it any longer
	}
	return false, err
}

// allowsUnhealthyEviction reports whether a pod that is not ready may be evicted
// without charging the budget: by default, only if enough others are ready.
func allowsUnhealthyEviction(b *policyv1.PodDisruptionBudget) bool {
	if ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}

func (e *evictions) budgetOf(ctx context.Context, pod *core.Pod) (*policyv1.PodDisruptionBudget, error) {
	list, err := e.budgets.List(ctx, pod.Namespace, registry.ListOptions{})
	if err != nil {
		return nil, err
	}
	var found *policyv1.PodDisruptionBudget
	for _, item := range list.Items {
		decoded, err := e.budgets.Decode(item)
		if err != nil {
			return nil, err
		}
		budget := decoded.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue // an unreadable one selects nothing
		}
		if found != nil {
			return nil, status.WithoutReason("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
		}
		found = budget
	}
	return found, nil
}

// recordDisruption records in the budget's status that the pod is about to go, or returns
// why it has to stay.
func (e *evictions) recordDisruption(b *policyv1.PodDisruptionBudget, pod string) error {
	s := &b.Status
	forbidden := func(text, cause string) error {
		err := apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), b.Name, errors.New(text))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: allowsNone(b, ": "+cause)}}
		return err
	}
	switch {
	case s.ObservedGeneration < b.Generation:
		return violation(budgetRetrySeconds, fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name))
	case s.DisruptionsAllowed < 0:
		return forbidden("pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
	case len(s.DisruptedPods) > maxDisrupted:
		return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller",
			"too many pending evictions not confirmed by PDB controller")
	case s.DisruptionsAllowed == 0:
		return violation(0, whyNone(b))
	}
	s.DisruptionsAllowed--
	if s.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
			ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.NewTime(e.clock.Now()),
		})
	}
	if s.DisruptedPods == nil {
		s.DisruptedPods = map[string]metav1.Time{}
	}
	s.DisruptedPods[pod] = metav1.NewTime(e.clock.Now())
	return nil
}

// whyNone is why a budget allows no disruption. It can have enough pods: those evicted lately count until their
// deletion has been seen. Where its loop has failed, its numbers are old.
func whyNone(b *policyv1.PodDisruptionBudget) string {
	s := &b.Status
	known := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	told := known != nil && known.Status == metav1.ConditionFalse && known.Message != ""
	switch {
	case told && known.Reason == policyv1.SyncFailedReason:
		return allowsNone(b, " because it failed sync: "+known.Message)
	case s.CurrentHealthy <= s.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, s.DesiredHealthy, s.CurrentHealthy)
	case told:
		return allowsNone(b, fmt.Sprintf(" (%s): %s", known.Reason, known.Message))
	}
	return allowsNone(b, "")
}

func allowsNone(b *policyv1.PodDisruptionBudget, why string) string {
	return "The disruption budget " + b.Name + " does not allow evicting pods currently" + why
}

func violation(retrySeconds int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retrySeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause}}
	return err
}
