package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/proto/core"
)

// prepareResize keeps all of a pod but what its containers have of cpu and
// memory, and how they take to a change of it.
func prepareResize(_ context.Context, pod, old *core.Pod) {
	spec := *old.Spec.DeepCopy()
	resizeContainers(spec.Containers, pod.Spec.Containers)
	resizeContainers(spec.InitContainers, pod.Spec.InitContainers)
	pod.Spec, pod.Status = spec, old.Status
	pod.Labels, pod.Annotations = old.Labels, old.Annotations
}

func resizeContainers(kept, asked []core.Container) {
	for i := range kept {
		for j := range asked {
			if asked[j].Name == kept[i].Name {
				kept[i].Resources, kept[i].ResizePolicy = asked[j].Resources, asked[j].ResizePolicy
			}
		}
	}
}

// validateResize: a pod stays of its class of service, what is bounded stays
// bounded, and what never runs again is not resized.
func validateResize(_ context.Context, pod, old *core.Pod) field.ErrorList {
	at := field.NewPath("spec")
	if _, mirror := old.Annotations[core.ConfigMirrorAnnotation]; mirror {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if phase := old.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return field.ErrorList{field.Forbidden(field.NewPath(""), fmt.Sprintf("a pod that is %s cannot be resized", phase))}
	}
	errs := validateSpec(&pod.Spec, at)
	if now, was := qosClass(&pod.Spec), old.Status.QOSClass; was != "" && now != was {
		errs = append(errs, field.Invalid(at, now, "Pod QOS Class may not change as a result of resizing"))
	}
	for i := range pod.Spec.Containers {
		errs = append(errs, validateContainerResize(&pod.Spec.Containers[i], &old.Spec.Containers[i], at.Child("containers").Index(i))...)
	}
	for i := range pod.Spec.InitContainers {
		now, was, path := &pod.Spec.InitContainers[i], &old.Spec.InitContainers[i], at.Child("initContainers").Index(i)
		sidecar := was.RestartPolicy != nil && *was.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if !sidecar && !equality.Semantic.DeepEqual(now.Resources, was.Resources) {
			errs = append(errs, field.Forbidden(path.Child("resources"), "only init containers that are restarted always can be resized"))
			continue
		}
		errs = append(errs, validateContainerResize(now, was, path)...)
	}
	return errs
}

func validateContainerResize(now, was *core.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	resources := at.Child("resources")
	for _, list := range []struct {
		name     string
		now, was corev1.ResourceList
	}{{"limits", now.Resources.Limits, was.Resources.Limits}, {"requests", now.Resources.Requests, was.Resources.Requests}} {
		for name := range list.was {
			if _, kept := list.now[name]; !kept {
				errs = append(errs, field.Forbidden(resources.Child(list.name).Key(string(name)), "resource "+list.name+" cannot be removed"))
			}
		}
		for name, amount := range list.now {
			before, had := list.was[name]
			if !resizable.Has(name) && !(had && amount.Cmp(before) == 0) {
				errs = append(errs, field.Forbidden(resources.Child(list.name).Key(string(name)), "only cpu and memory resources are mutable"))
			}
		}
	}
	if !equality.Semantic.DeepEqual(now.Resources.Claims, was.Resources.Claims) {
		errs = append(errs, field.Forbidden(resources.Child("claims"), "only cpu and memory resources are mutable"))
	}
	return errs
}
