package pod

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Eviction is pods/eviction: a deletion that is recorded in the pod's status as
// a disruption, and that is refused until the pod's disruption budget allows it.
func Eviction(pods, budgets registry.Resource, clock clock.PassiveClock) registry.Subresource {
	e := &evictions{pods: pods, budgets: budgets, clock: clock}
	return registry.Subresource{
		Name:        "eviction",
		Kind:        policyv1.SchemeGroupVersion.WithKind("Eviction"),
		AlsoAccepts: []schema.GroupVersionKind{{Group: policyv1.GroupName, Version: "v1beta1", Kind: "Eviction"}},
		New:         func() runtime.Object { return new(policyv1.Eviction) },
		Create: func(ctx context.Context, namespace, name string, obj runtime.Object, o *metav1.CreateOptions) (runtime.Object, error) {
			eviction := obj.(*policyv1.Eviction)
			switch {
			case eviction.Name != name:
				return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
			case eviction.Namespace != "" && eviction.Namespace != namespace:
				return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
			}
			if given := eviction.DeleteOptions; given != nil && ptr.Deref(given.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
				return nil, registry.Invalid(schema.GroupKind{Group: policyv1.GroupName, Kind: "Eviction"}, name, field.ErrorList{
					field.Invalid(field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true,
						"can not be set for pod eviction, try after removing the option"),
				})
			}
			options, err := deleteOptions(eviction.DeleteOptions, o)
			if err != nil {
				return nil, err
			}
			return e.evict(ctx, namespace, name, options)
		},
	}
}

type evictions struct {
	pods, budgets registry.Resource
	clock         clock.PassiveClock
}

// deleteOptions are the eviction's own, validated like those of a deletion.
// Both they and the request may ask for a dry run, if they agree.
func deleteOptions(within *metav1.DeleteOptions, o *metav1.CreateOptions) (*metav1.DeleteOptions, error) {
	options := within.DeepCopy()
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	switch {
	case len(options.DryRun) == 0:
		options.DryRun = o.DryRun
	case len(o.DryRun) > 0 && !slices.Equal(options.DryRun, o.DryRun):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Non-matching dry-run options in request and content: %v and %v",
			o.DryRun, options.DryRun))
	}
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return options, nil
}

// evictionAttempts bounds how often a pod is looked at again because it changed before it
// was deleted; upstream's.
const evictionAttempts = 20

func (e *evictions) evict(ctx context.Context, namespace, name string, asked *metav1.DeleteOptions) (*metav1.Status, error) {
	for range evictionAttempts {
		options, err := e.permit(ctx, namespace, name, asked)
		if err != nil {
			return nil, err
		}
		err = e.markAndDelete(ctx, namespace, name, options)
		switch {
		case err == nil:
			return &metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusSuccess, Code: http.StatusCreated,
			}, nil
		case !apierrors.IsConflict(err):
			return nil, err
		}
	}
	return nil, violation(budgetRetrySeconds, fmt.Sprintf("The pod %s changed each time that it was about to be evicted.", name))
}

// permit charges the pod's disruption budget, and returns the options that delete what it
// has looked at: by then the name may be another pod's, and a pod that nobody relied on may
// be ready.
func (e *evictions) permit(ctx context.Context, namespace, name string, asked *metav1.DeleteOptions) (*metav1.DeleteOptions, error) {
	pod, err := registry.GetStored[*core.Pod](ctx, e.pods, namespace, name)
	if err != nil {
		return nil, err
	}
	if err := registry.Preconditions(core.Pods, pod, asked.Preconditions); err != nil {
		return nil, err
	}
	unready, err := e.takeFromBudget(ctx, pod, asked.DryRun)
	if err != nil {
		return nil, err
	}
	options := asked.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	options.Preconditions.UID = &pod.UID
	if unready {
		options.Preconditions.ResourceVersion = &pod.ResourceVersion
	}
	return options, nil
}

func (e *evictions) markAndDelete(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) error {
	now := metav1.NewTime(e.clock.Now())
	mark := func(current core.Object) (core.Object, error) {
		pod := current.(*core.Pod)
		if err := registry.Preconditions(core.Pods, pod, options.Preconditions); err != nil {
			return nil, err
		}
		SetCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		}, now)
		return pod, nil
	}
	marked, _, err := e.pods.Update(ctx, registry.Target{Namespace: namespace, Name: name, Subresource: "status"}, mark,
		registry.Admission{}, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return err
	}
	if options.Preconditions.ResourceVersion != nil {
		version := strconv.FormatInt(marked.Revision, 10)
		options.Preconditions.ResourceVersion = &version // the mark is a change of ours
	}
	_, _, err = e.pods.Delete(ctx, namespace, name, registry.Admission{}, options)
	return err
}
