package resources_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/pod"
	"kctl/proto/core"
)

// changing is a store whose objects change right after each of the first looks at them.
type changing struct {
	registry.Resource
	looks  int
	change func()
}

func (c *changing) Get(ctx context.Context, namespace, name, version string) (registry.Encoded, error) {
	found, err := c.Resource.Get(ctx, namespace, name, version)
	if c.looks--; c.looks >= 0 {
		c.change()
	}
	return found, err
}

// TestEvictionOfAPodThatChanges: whatever a pod becomes after the server has looked at it,
// a budget that allows nothing keeps what is ready.
func TestEvictionOfAPodThatChanges(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	web := map[string]string{"app": "web"}
	make := func(name string, phase corev1.PodPhase, ready corev1.ConditionStatus) {
		t.Helper()
		b.pod(name, func(p *core.Pod) { p.Labels = web })
		if _, err := b.create(core.Pods, "binding", name, bindTo(name, "n1")); err != nil {
			t.Fatal(err)
		}
		b.becomes(name, phase, ready)
	}
	if _, err := b.DisruptionBudgets.CreateTyped(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: web}, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.DisruptionBudgets.UpdateTyped(ctx, "default", "web", "status", func(b *policyv1.PodDisruptionBudget) error {
		b.Status.ObservedGeneration = b.Generation
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	version := 0
	for name, c := range map[string]struct {
		phase  corev1.PodPhase
		looks  int
		change func(name string)
		stays  bool
	}{
		"pending-ready":   {corev1.PodPending, 1, func(name string) { b.becomes(name, corev1.PodRunning, corev1.ConditionTrue) }, true},
		"unready-ready":   {corev1.PodRunning, 1, func(name string) { b.becomes(name, corev1.PodRunning, corev1.ConditionTrue) }, true},
		"pending-running": {corev1.PodPending, 1, func(name string) { b.becomes(name, corev1.PodRunning, corev1.ConditionFalse) }, false},
		"never-the-same": {corev1.PodPending, 1000, func(name string) {
			version++
			if _, err := b.Pods.UpdateTyped(ctx, "default", name, "", func(p *core.Pod) error {
				p.Labels["version"] = fmt.Sprint(version)
				return nil
			}); err != nil {
				t.Error(err)
			}
		}, true},
		"ended-another": {corev1.PodFailed, 1, func(name string) {
			if err := b.Pods.DeleteTyped(ctx, "default", name, metav1.NewDeleteOptions(0)); err != nil {
				t.Error(err)
			}
			make(name, corev1.PodRunning, corev1.ConditionTrue)
		}, true},
	} {
		make(name, c.phase, corev1.ConditionFalse)
		pods := &changing{Resource: b.Pods, looks: c.looks, change: func() { c.change(name) }}
		_, err := pod.Eviction(pods, b.DisruptionBudgets, clock.RealClock{}).
			Create(ctx, "default", name, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}, &metav1.CreateOptions{})
		if c.stays && !apierrors.IsTooManyRequests(err) || !c.stays && err != nil {
			t.Errorf("%s: evicting it: %v", name, err)
		}
		if p, err := registry.GetStored[*core.Pod](ctx, b.Pods, "default", name); err != nil || (p.DeletionTimestamp == nil) != c.stays {
			t.Errorf("%s: %v, ends at %v", name, err, p.DeletionTimestamp)
		}
	}
}

// TestEvictionIgnoresNoReadError: it would mark the pod as disrupted and charge its budget again and again, since what can
// be read is not deleted so.
func TestEvictionIgnoresNoReadError(t *testing.T) {
	b := start(t)
	b.pod("a", func(*core.Pod) {})
	_, err := pod.Eviction(b.Pods, b.DisruptionBudgets, clock.RealClock{}).Create(t.Context(), "default", "a", &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: "a"},
		DeleteOptions: &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)},
	}, &metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Error(err)
	}
	if p, err := registry.GetStored[*core.Pod](t.Context(), b.Pods, "default", "a"); err != nil || len(p.Status.Conditions) > 0 {
		t.Errorf("%v, with %v", err, p.Status.Conditions)
	}
}

// becomes sets a pod's phase and whether it is ready.
func (b *bed) becomes(name string, phase corev1.PodPhase, ready corev1.ConditionStatus) {
	b.t.Helper()
	if _, err := b.Pods.UpdateTyped(b.t.Context(), "default", name, "status", func(p *core.Pod) error {
		p.Status.Phase = phase
		pod.SetCondition(&p.Status, corev1.PodCondition{Type: corev1.PodReady, Status: ready}, metav1.Now())
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
}
