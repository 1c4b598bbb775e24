package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

func validateEphemeralContainers(s *containerScope, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	others, names := sets.New[string](), sets.New[string]()
	for _, c := range s.spec.InitContainers {
		names.Insert(c.Name)
		others.Insert(c.Name)
	}
	for _, c := range s.spec.Containers {
		names.Insert(c.Name)
		others.Insert(c.Name)
	}
	for i := range s.spec.EphemeralContainers {
		e, path := &s.spec.EphemeralContainers[i], at.Child("ephemeralContainers").Index(i)
		c := (*core.Container)(&e.EphemeralContainerCommon)
		errs = append(errs, uniqueLabel(e.Name, path.Child("name"), names)...)
		errs = append(errs, s.container(c, path)...)
		if e.TargetContainerName != "" && !others.Has(e.TargetContainerName) {
			errs = append(errs, field.NotFound(path.Child("targetContainerName"), e.TargetContainerName))
		}
		errs = append(errs, validateTrimmed(e.Image, path.Child("image"))...)
		errs = append(errs, validateEphemeralFields(c, path)...)
	}
	return errs
}

// validateEphemeralFields refuses what only containers that are there from the pod's
// start can have: by now the pod's resources have been allocated.
func validateEphemeralFields(c *core.Container, path *field.Path) (errs field.ErrorList) {
	const text = "cannot be set for an Ephemeral Container"
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ports", len(c.Ports) > 0},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil},
		{"resizePolicy", len(c.ResizePolicy) > 0},
		{"restartPolicy", c.RestartPolicy != nil},
		{"restartPolicyRules", len(c.RestartPolicyRules) > 0},
		{"resources", !equality.Semantic.DeepEqual(c.Resources, corev1.ResourceRequirements{})},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), text))
		}
	}
	for i, m := range c.VolumeMounts {
		mount := path.Child("volumeMounts").Index(i)
		if m.SubPath != "" {
			errs = append(errs, field.Forbidden(mount.Child("subPath"), text))
		}
		if m.SubPathExpr != "" {
			errs = append(errs, field.Forbidden(mount.Child("subPathExpr"), text))
		}
	}
	return errs
}

// validateEphemeralUpdate allows ephemeral containers to be added, but not
// changed or removed.
func validateEphemeralUpdate(_ context.Context, pod, old *core.Pod) field.ErrorList {
	errs := validateSpec(&pod.Spec, specPath)
	at := field.NewPath("spec", "ephemeralContainers")
	now := make(map[string]*corev1.EphemeralContainer, len(pod.Spec.EphemeralContainers))
	for i := range pod.Spec.EphemeralContainers {
		now[pod.Spec.EphemeralContainers[i].Name] = &pod.Spec.EphemeralContainers[i]
	}
	for i := range old.Spec.EphemeralContainers {
		before := &old.Spec.EphemeralContainers[i]
		switch after, ok := now[before.Name]; {
		case !ok:
			errs = append(errs, field.Forbidden(at, "existing ephemeral containers \""+before.Name+"\" may not be removed\n"))
		case !equality.Semantic.DeepEqual(before, after):
			errs = append(errs, field.Forbidden(at, "existing ephemeral containers \""+before.Name+"\" may not be changed\n"))
		}
	}
	if _, mirror := old.Annotations[core.ConfigMirrorAnnotation]; mirror {
		errs = append(errs, field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers"))
	}
	return errs
}
