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
	before := validateSpec(&pod.Spec, at) // the store leaves out those that old had
	var errs field.ErrorList
	if was := knownQOSClass(old); was != qosClass(&pod.Spec) {
		errs = append(errs, field.Invalid(at, was, "Pod QOS Class may not change as a result of resizing"))
	}
	errs = append(errs, validatePodLevelResize(pod.Spec.Resources, old.Spec.Resources, at)...)
	others := otherContainers(pod.Spec.Containers, old.Spec.Containers, at, "containers")
	others = append(others, otherContainers(pod.Spec.InitContainers, old.Spec.InitContainers, at, "initContainers")...)
	if len(others) > 0 {
		return slices.Concat(before, errs, others)
	}
	errs = append(errs, removedResources(pod.Spec.Containers, old.Spec.Containers, at.Child("containers"))...)
	errs = append(errs, removedResources(pod.Spec.InitContainers, old.Spec.InitContainers, at.Child("initContainers"))...)
	errs = append(errs, onlyCPUAndMemory(&pod.Spec, &old.Spec, at)...)
	if len(errs) == 0 && !hasAmounts(pod.Spec.Resources) && !equality.Semantic.DeepEqual(pod.Spec.Resources, old.Spec.Resources) {
		errs = append(errs, field.Forbidden(at, onlySizes+" are mutable"))
	}
	return append(before, errs...)
}

// knownQOSClass is the class that the pod got when it was created.
func knownQOSClass(pod *core.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return qosClass(&pod.Spec)
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

// validatePodLevelResize compares resources of the whole pod, of which it may have none.
func validatePodLevelResize(now, was *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	if now == nil || !hasAmounts(now) && !hasAmounts(was) {
		return nil
	}
	var errs field.ErrorList
	if was != nil {
		errs = removedFrom(now, was, at.Child("resources"), "pod-level resource")
	}
	if !sameButSize(*now, was) {
		errs = append(errs, field.Forbidden(at, onlySizes+" are mutable at pod-level"))
	}
	return errs
}

func hasAmounts(r *corev1.ResourceRequirements) bool {
	return r != nil && len(r.Requests)+len(r.Limits) > 0
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

const onlySizes = "only cpu and memory resources"

func onlyCPUAndMemory(now, was *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.EqualFunc(now.Containers, was.Containers, sameContainerButSize) {
		errs = append(errs, field.Forbidden(at, onlySizes+" are mutable"))
	}
	for i := range now.InitContainers {
		c, old, path := &now.InitContainers[i], &was.InitContainers[i], at.Child("initContainers").Index(i)
		if !sameContainerButSize(*c, *old) {
			errs = append(errs, field.Forbidden(path, onlySizes+" for init or sidecar containers are mutable"))
		}
		restarts := slices.ContainsFunc(c.ResizePolicy,
			func(p corev1.ContainerResizePolicy) bool { return p.RestartPolicy == corev1.RestartContainer })
		if restarts && !core.IsSidecar(c) && !equality.Semantic.DeepEqual(c, old) {
			errs = append(errs, field.Forbidden(path, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"))
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
		if !slices.Contains(resizable, name) {
			out[name] = amount
		}
	}
	return out
}
