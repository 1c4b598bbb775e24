package pod

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

const mutableFieldsMessage = "pod updates may not change fields other than `spec.containers[*].image`," +
	"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validateUpdate allows only a few fields of a pod to change, because kubelets
// act on the others only at the start.
func validateUpdate(pod, old *core.Pod) field.ErrorList {
	at := specPath
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) { // else the store would leave all errors out
		errs = field.Twice(at, func(at *field.Path) field.ErrorList { return validateSpec(&pod.Spec, at) })
	}
	errs = append(errs, validateAnnotationUpdate(pod, old)...)
	for _, group := range []struct {
		name     string
		now, was []core.Container
	}{
		{"containers", pod.Spec.Containers, old.Spec.Containers},
		{"initContainers", pod.Spec.InitContainers, old.Spec.InitContainers},
	} {
		if len(group.now) != len(group.was) {
			return append(errs, field.Forbidden(at.Child(group.name), "pod updates may not add or remove containers"))
		}
	}
	errs = append(errs, validateDeadlineUpdate(pod, old, at.Child("activeDeadlineSeconds"))...)
	errs = append(errs, onlyAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations, at.Child("tolerations"))...)
	errs = append(errs, onlyRemovedGates(pod, old, at)...)

	rest := withMutableFieldsReset(pod, old)
	if len(old.Spec.SchedulingGates) > 0 {
		errs = append(errs, allowGatedChanges(&rest, &old.Spec, at)...)
	}
	if !equality.Semantic.DeepEqual(rest, old.Spec) {
		errs = append(errs, field.Forbidden(at, mutableFieldsMessage+"\nchanged: "+strings.Join(differences("spec", old.Spec, rest), ", ")))
	}
	return errs
}

// withMutableFieldsReset is the new spec with its mutable fields reset to the old ones.
func withMutableFieldsReset(pod, old *core.Pod) core.PodSpec {
	rest := *pod.Spec.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	rest.Tolerations = old.Spec.Tolerations
	rest.SchedulingGates = old.Spec.SchedulingGates
	was, now := old.Spec.TerminationGracePeriodSeconds, rest.TerminationGracePeriodSeconds
	if was != nil && *was < 0 && now != nil && *now == 1 {
		rest.TerminationGracePeriodSeconds = was
	}
	return rest
}

func validateDeadlineUpdate(pod, old *core.Pod, at *field.Path) field.ErrorList {
	now, was := pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds
	switch {
	case now == nil && was != nil:
		return field.ErrorList{field.Invalid(at, now, "must not update from a positive integer to nil value")}
	case now == nil:
		return nil
	case *now < 0 || *now > math.MaxInt32:
		return inRange(*now, 0, math.MaxInt32, at)
	case was != nil && *was < *now:
		return field.ErrorList{field.Invalid(at, *now, "must be less than or equal to previous value")}
	}
	return nil
}

func onlyAddedTolerations(now, was []corev1.Toleration, at *field.Path) field.ErrorList {
	kept := make(map[corev1.Toleration]bool, len(now))
	for _, after := range now {
		after.TolerationSeconds = nil
		kept[after] = true
	}
	for _, before := range was {
		before.TolerationSeconds = nil
		if !kept[before] {
			return field.ErrorList{field.Forbidden(at, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return check.Tolerations(now, at)
}

func onlyRemovedGates(pod, old *core.Pod, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	was := map[string]bool{}
	for _, gate := range old.Spec.SchedulingGates {
		was[gate.Name] = true
	}
	for i, gate := range pod.Spec.SchedulingGates {
		if !was[gate.Name] {
			errs = append(errs, field.Forbidden(at.Child("schedulingGates").Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name)))
		}
	}
	return errs
}

func validateAnnotationUpdate(pod, old *core.Pod) field.ErrorList {
	at := annotationsPath
	errs := validateAnnotations(pod.Annotations, &pod.Spec, at, specPath)
	fixed := func(key, what string) {
		now, has := pod.Annotations[key]
		was, had := old.Annotations[key]
		switch {
		case had && (!has || now != was):
			errs = append(errs, field.Forbidden(at.Key(key), "may not remove or update "+what))
		case has && !had:
			errs = append(errs, field.Forbidden(at.Key(key), "may not add "+what))
		}
	}
	// Kubelets read them when they restart a container: a user who may label a pod
	// could remove the profile with which it was admitted.
	keys := slices.AppendSeq(slices.Collect(maps.Keys(old.Annotations)), maps.Keys(pod.Annotations))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if strings.HasPrefix(key, appArmorContainerPrefix) {
			fixed(key, "AppArmor annotations")
		}
	}
	fixed(core.ConfigMirrorAnnotation, "mirror pod annotation")
	return errs
}

// keepIdentity keeps the metadata that a status update may not change.
func keepIdentity(pod, old *metav1.ObjectMeta) {
	pod.DeletionTimestamp = old.DeletionTimestamp
	pod.OwnerReferences = old.OwnerReferences
}
