package pod

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

// prepareResize keeps everything of a pod except its and its containers' cpu
// and memory. If the containers differ, it leaves them for validateResize to
// see.
func prepareResize(_ context.Context, pod, old *core.Pod) {
	spec := *old.Spec.DeepCopy()
	spec.Containers = resized(spec.Containers, pod.Spec.Containers)
	spec.InitContainers = resized(spec.InitContainers, pod.Spec.InitContainers)
	if pod.Spec.Resources != nil {
		spec.Resources = pod.Spec.Resources
	}
	defaultPodResources(&spec)
	pod.Spec, pod.Status = spec, old.Status
	keepMetadata(pod, old)
}

func resized(kept, asked []core.Container) []core.Container {
	if !slices.EqualFunc(kept, asked, sameName) {
		return asked
	}
	for i := range kept {
		kept[i].Resources, kept[i].ResizePolicy = asked[i].Resources, asked[i].ResizePolicy
	}
	return kept
}

func sameName(a, b core.Container) bool { return a.Name == b.Name }

// validateResize checks that the QoS class and the containers stay the same,
// that limits are not removed, and that only cpu and memory change.
func validateResize(_ context.Context, pod, old *core.Pod) field.ErrorList {
	at := specPath
	if _, mirror := old.Annotations[core.ConfigMirrorAnnotation]; mirror {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if system := old.Spec.OS; system != nil && system.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	errs := validateSpec(&pod.Spec, at)
	if was := qosClass(&old.Spec); was != qosClass(&pod.Spec) {
		errs = append(errs, field.Invalid(at, was, "Pod QOS Class may not change as a result of resizing"))
	}
	others := otherContainers(pod.Spec.Containers, old.Spec.Containers, at, "containers")
	others = append(others, otherContainers(pod.Spec.InitContainers, old.Spec.InitContainers, at, "initContainers")...)
	if len(others) > 0 {
		return append(errs, others...)
	}
	errs = append(errs, removedFromPod(&pod.Spec, &old.Spec, at.Child("resources"))...)
	errs = append(errs, removedResources(pod.Spec.Containers, old.Spec.Containers, at.Child("containers"))...)
	errs = append(errs, removedResources(pod.Spec.InitContainers, old.Spec.InitContainers, at.Child("initContainers"))...)
	return append(errs, onlyCPUAndMemory(&pod.Spec, &old.Spec, at)...)
}

// otherContainers refuses new or reordered containers.
func otherContainers(now, was []core.Container, at *field.Path, name string) field.ErrorList {
	if len(now) != len(was) {
		return field.ErrorList{field.Forbidden(at.Child(name), name+" may not be added or removed on resize")}
	}
	var errs field.ErrorList
	for i := range now {
		if now[i].Name != was[i].Name {
			errs = append(errs, field.Forbidden(at.Child(name).Index(i).Child("name"), name+" may not be renamed or reordered on resize"))
		}
	}
	return errs
}

func removedResources(now, was []core.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range now {
		errs = append(errs, removedFrom(&now[i].Resources, &was[i].Resources, at.Index(i).Child("resources"), "resource")...)
	}
	return errs
}

func removedFromPod(now, was *core.PodSpec, at *field.Path) field.ErrorList {
	if now.Resources == nil || was.Resources == nil {
		return nil
	}
	return removedFrom(now.Resources, was.Resources, at, "pod-level resource")
}

func removedFrom(now, was *corev1.ResourceRequirements, at *field.Path, what string) field.ErrorList {
	var errs field.ErrorList
	if lacksOf(now.Requests, was.Requests) {
		errs = append(errs, field.Forbidden(at.Child("requests"), what+" requests cannot be removed"))
	}
	if lacksOf(now.Limits, was.Limits) {
		errs = append(errs, field.Forbidden(at.Child("limits"), what+" limits cannot be removed"))
	}
	return errs
}

func lacksOf(now, was corev1.ResourceList) bool {
	for name := range was {
		if _, kept := now[name]; !kept {
			return true
		}
	}
	return false
}

func onlyCPUAndMemory(now, was *core.PodSpec, at *field.Path) field.ErrorList {
	const words = "only cpu and memory resources"
	var errs field.ErrorList
	if r, old := now.Resources, was.Resources; r != nil && !sameButSize(*r, old) {
		errs = append(errs, field.Forbidden(at, words+" are mutable at pod-level"))
	}
	if !slices.EqualFunc(now.Containers, was.Containers, sameContainerButSize) {
		errs = append(errs, field.Forbidden(at, words+" are mutable"))
	}
	for i := range now.InitContainers {
		if !sameContainerButSize(now.InitContainers[i], was.InitContainers[i]) {
			errs = append(errs, field.Forbidden(at.Child("initContainers").Index(i), words+" for init or sidecar containers are mutable"))
		}
	}
	return errs
}

func sameContainerButSize(now, was core.Container) bool {
	return sameButSize(now.Resources, &was.Resources) && equality.Semantic.DeepEqual(now.ResizePolicy, was.ResizePolicy)
}

// sameButSize reports whether only cpu and memory differ.
func sameButSize(now corev1.ResourceRequirements, was *corev1.ResourceRequirements) bool {
	if was == nil {
		was = &corev1.ResourceRequirements{}
	}
	return equality.Semantic.DeepEqual(withoutSize(now), withoutSize(*was))
}

func withoutSize(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: unsizable(r.Requests), Limits: unsizable(r.Limits), Claims: r.Claims}
}

func unsizable(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range list {
		if !resizable.Has(name) {
			out[name] = amount
		}
	}
	return out
}
