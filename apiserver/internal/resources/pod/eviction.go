package pod

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Eviction is pods/eviction: a deletion that says in the pod's status that it
// was not the owner's wish, and that waits until the disruption budget which the
// pod counts for has room for it.
func Eviction(pods, budgets registry.Resource, clock clock.PassiveClock) registry.Subresource {
	e := &evictions{pods: pods, budgets: budgets, clock: clock}
	return registry.Subresource{
		Name: "eviction",
		Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"),
		New:  func() any { return new(policyv1.Eviction) },
		Create: func(ctx context.Context, namespace, name string, obj any, o *metav1.CreateOptions) (any, error) {
			eviction := obj.(*policyv1.Eviction)
			if eviction.Name != "" && eviction.Name != name {
				return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
			}
			return e.evict(ctx, namespace, name, eviction.DeleteOptions, o)
		},
	}
}

type evictions struct {
	pods, budgets registry.Resource
	clock         clock.PassiveClock
}

func (e *evictions) evict(ctx context.Context, namespace, name string, options *metav1.DeleteOptions, o *metav1.CreateOptions) (*metav1.Status, error) {
	pods, now := e.pods, metav1.NewTime(e.clock.Now())
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if len(options.DryRun) == 0 {
		options.DryRun = o.DryRun
	}
	if err := e.askBudget(ctx, namespace, name, options); err != nil {
		return nil, err
	}
	mark := func(current core.Object) (core.Object, error) {
		pod := current.(*core.Pod)
		if err := sameUID(pod, options); err != nil {
			return nil, err
		}
		setCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
			Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		}, now)
		return pod, nil
	}
	if _, _, err := pods.Update(ctx, namespace, name, "status", mark, registry.Admit{}, &metav1.UpdateOptions{DryRun: options.DryRun}); err != nil {
		return nil, err
	}
	if _, _, err := pods.Delete(ctx, namespace, name, registry.Admit{}, options); err != nil {
		return nil, err
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess, Code: http.StatusCreated,
	}, nil
}

// askBudget asks the pod's disruption budget, if the pod is the one that is
// meant.
func (e *evictions) askBudget(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) error {
	encoded, err := e.pods.Get(ctx, namespace, name, "")
	if err != nil {
		return err
	}
	obj, err := e.pods.Decode(encoded)
	if err != nil {
		return err
	}
	pod := obj.(*core.Pod)
	if err := sameUID(pod, options); err != nil {
		return err
	}
	return e.takeFromBudget(ctx, pod, options.DryRun)
}

func sameUID(pod *core.Pod, options *metav1.DeleteOptions) error {
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
		return apierrors.NewConflict(core.Pods.GVR().GroupResource(), pod.Name,
			&preconditionError{want: string(*p.UID), have: string(pod.UID)})
	}
	return nil
}

type preconditionError struct{ want, have string }

func (e *preconditionError) Error() string {
	return "Precondition failed: UID in precondition: " + e.want + ", UID in object meta: " + e.have
}
