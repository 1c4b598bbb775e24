package limitranger

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

const (
	// Name is upstream's name.
	Name = "LimitRanger"

	annotation = "kubernetes.io/limit-ranger"
)

// Ranges finds the limit ranges of a namespace; lookup.Scoped does.
type Ranges interface {
	In(ctx context.Context, namespace string) ([]*corev1.LimitRange, error)
	Forget(namespace string)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	ranges Ranges
}

// New returns the plugin.
func New(ranges Ranges) *Plugin { return &Plugin{ranges: ranges} }

// Admit gives new pods the ranges' defaults.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" || a.Operation != admission.Create {
		return nil
	}
	found, err := p.ranges.In(ctx, a.Namespace)
	if err != nil {
		return err
	}
	for _, r := range found {
		setDefaults(pod, r)
	}
	return nil
}

// Validate checks the object against every range.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	var check func(items []corev1.LimitRangeItem) []error
	switch obj := a.Object.(type) {
	case *core.Pod:
		isNew := a.Operation == admission.Create && a.Subresource == ""
		if !isNew && a.Subresource != "resize" {
			return nil
		}
		check = func(items []corev1.LimitRangeItem) []error { return checkPod(obj, items) }
	case *corev1.PersistentVolumeClaim:
		if a.Subresource != "" {
			return nil
		}
		check = func(items []corev1.LimitRangeItem) []error { return checkClaim(obj, items) }
	case *corev1.LimitRange:
		p.ranges.Forget(a.Namespace)
		return nil
	default:
		return nil
	}
	found, err := p.ranges.In(ctx, a.Namespace)
	if err != nil {
		return err
	}
	for _, r := range found {
		if errs := check(r.Spec.Limits); len(errs) > 0 {
			return utilerrors.NewAggregate(errs)
		}
	}
	return nil
}

func checkPod(pod *core.Pod, items []corev1.LimitRangeItem) []error {
	var errs []error
	for i := range items {
		item := &items[i]
		switch item.Type {
		case corev1.LimitTypeContainer:
			for _, group := range [][]core.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
				for j := range group {
					errs = append(errs, checkBounds(item, group[j].Resources.Requests, group[j].Resources.Limits)...)
				}
			}
		case corev1.LimitTypePod:
			requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
			limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
			errs = append(errs, checkBounds(item, requests, limits)...)
		}
	}
	return errs
}

func checkClaim(claim *corev1.PersistentVolumeClaim, items []corev1.LimitRangeItem) []error {
	var errs []error
	for i := range items {
		item := &items[i]
		if item.Type != corev1.LimitTypePersistentVolumeClaim {
			continue
		}
		// A claim has requests only, no limits.
		errs = append(errs, checkRequestBounds(item, claim.Spec.Resources.Requests)...)
	}
	return errs
}
