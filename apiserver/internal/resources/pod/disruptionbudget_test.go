package pod

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A budget of which enough pods are healthy does not say that it needs more: it may have been charged for others
// just now. One whose loop has failed tells why, and not numbers of the time before.
func TestWhyABudgetAllowsNothing(t *testing.T) {
	condition := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	const none = "The disruption budget b does not allow evicting pods currently"
	for name, c := range map[string]struct {
		conditions    []metav1.Condition
		has, needs    int32
		allowed       int32
		disruptedPods int
		want          string
	}{
		"too few":             {has: 2, needs: 2, want: "The disruption budget b needs 2 healthy pods and has 2 currently"},
		"charged":             {condition(policyv1.InsufficientPodsReason, ""), 20, 15, 0, 0, none},
		"charged, with words": {condition(policyv1.InsufficientPodsReason, "words"), 20, 15, 0, 0, none + " (InsufficientPods): words"},
		"failed":              {condition(policyv1.SyncFailedReason, "no scale"), 0, 0, 0, 0, none + " because it failed sync: no scale"},
		"negative":            {nil, 20, 15, -1, 0, none + ": pdb disruptions allowed is negative"},
		"too many":            {nil, 20, 15, 1, maxDisrupted + 1, none + ": too many pending evictions not confirmed by PDB controller"},
	} {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: policyv1.PodDisruptionBudgetStatus{
			Conditions: c.conditions, CurrentHealthy: c.has, DesiredHealthy: c.needs, DisruptionsAllowed: c.allowed,
			DisruptedPods: map[string]metav1.Time{},
		}}
		for i := range c.disruptedPods {
			b.Status.DisruptedPods[string(rune('a'+i))] = metav1.Time{}
		}
		err, ok := (&evictions{}).recordDisruption(b, "p").(interface{ Status() metav1.Status })
		if !ok {
			t.Errorf("%s: it is allowed", name)
			continue
		}
		causes := err.Status().Details.Causes
		if len(causes) != 1 || causes[0].Type != policyv1.DisruptionBudgetCause || causes[0].Message != c.want {
			t.Errorf("%s: %v, want %q", name, causes, c.want)
		}
	}
}
