// Package alwayspullimages makes every container pull its image each time it
// starts, so that an image on a node can only be run by pods with the
// credentials for it.
package alwayspullimages

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "AlwaysPullImages"

// Plugin is the plugin.
type Plugin struct{ admission.OnWrites }

// Admit sets the policies.
func (Plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod := podWithNewImages(a)
	if pod == nil {
		return nil
	}
	forEachPullPolicy(&pod.Spec, func(policy *corev1.PullPolicy, _ *field.Path) { *policy = corev1.PullAlways })
	return nil
}

// Validate refuses another policy set by a later plugin.
func (Plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod := podWithNewImages(a)
	if pod == nil {
		return nil
	}
	var errs []error
	forEachPullPolicy(&pod.Spec, func(policy *corev1.PullPolicy, at *field.Path) {
		if *policy != corev1.PullAlways {
			errs = append(errs, field.NotSupported(at, *policy, []corev1.PullPolicy{corev1.PullAlways}))
		}
	})
	return errors.Join(errs...)
}

// podWithNewImages returns the pod if it has images that it did not have before.
func podWithNewImages(a *admission.Attributes) *core.Pod {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" && a.Subresource != "ephemeralcontainers" {
		return nil
	}
	if old, ok := a.OldObject.(*core.Pod); ok && images(old).IsSuperset(images(pod)) {
		return nil
	}
	return pod
}

func images(pod *core.Pod) sets.Set[string] {
	out := sets.Set[string]{}
	for c := range core.Containers(&pod.Spec) {
		out.Insert(c.Image)
	}
	for i := range pod.Spec.EphemeralContainers {
		out.Insert(pod.Spec.EphemeralContainers[i].Image)
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			out.Insert(image.Reference)
		}
	}
	return out
}

func forEachPullPolicy(spec *core.PodSpec, do func(policy *corev1.PullPolicy, at *field.Path)) {
	root := field.NewPath("spec")
	for i := range spec.InitContainers {
		do(&spec.InitContainers[i].ImagePullPolicy, root.Child("initContainers").Index(i).Child("imagePullPolicy"))
	}
	for i := range spec.Containers {
		do(&spec.Containers[i].ImagePullPolicy, root.Child("containers").Index(i).Child("imagePullPolicy"))
	}
	for i := range spec.EphemeralContainers {
		do(&spec.EphemeralContainers[i].ImagePullPolicy, root.Child("ephemeralContainers").Index(i).Child("imagePullPolicy"))
	}
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil {
			do(&image.PullPolicy, root.Child("volumes").Index(i).Child("image", "pullPolicy"))
		}
	}
}
