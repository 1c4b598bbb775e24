package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// validateStatus validates a pod's reported status.
func validateStatus(pod, old *core.Pod) field.ErrorList {
	return field.Twice(statusPath, func(status *field.Path) field.ErrorList { return validateReport(pod, old, status) })
}

func validateReport(pod, old *core.Pod, at *field.Path) field.ErrorList {
	errs := validateAnnotationUpdate(pod, old)
	now, was := &pod.Status, &old.Status
	if now.QOSClass != was.QOSClass && was.QOSClass != "" {
		errs = append(errs, check.Unchanged(now.QOSClass, was.QOSClass, at.Child("qosClass"))...)
	}
	if name := now.NominatedNodeName; name != "" && name != was.NominatedNodeName {
		errs = append(errs, check.Messages(at.Child("nominatedNodeName"), name, check.NameIsSubdomain(name, false))...)
		if old.Spec.NodeName != "" {
			errs = append(errs, field.Forbidden(at.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node"))
		}
	}
	errs = append(errs, notNegative(now.ObservedGeneration, at.Child("observedGeneration"))...)
	errs = append(errs, validateConditions(now.Conditions, at.Child("conditions"))...)
	errs = append(errs, validateStatusAddresses(now, was, at)...)
	errs = append(errs, validateClaimStatuses(pod, at.Child("resourceClaimStatuses"))...)
	errs = append(errs, validateExtendedClaim(now.ExtendedResourceClaimStatus, &pod.Spec, at.Child("extendedResourceClaimStatus"))...)
	errs = append(errs, validateDeviceHealth(now.ContainerStatuses, pod.Spec.Containers, now, at.Child("containerStatuses"))...)
	errs = append(errs, validateDeviceHealth(now.InitContainerStatuses, pod.Spec.InitContainers, now, at.Child("initContainerStatuses"))...)
	errs = append(errs, noDeviceHealth(now.EphemeralContainerStatuses, at.Child("ephemeralContainerStatuses"))...)
	for _, group := range []struct {
		name     string
		statuses []core.ContainerStatus
	}{
		{"containerStatuses", now.ContainerStatuses}, {"initContainerStatuses", now.InitContainerStatuses},
		{"ephemeralContainerStatuses", now.EphemeralContainerStatuses},
	} {
		errs = append(errs, validateContainerUsers(group.statuses, pod.Spec.OS, at.Child(group.name))...)
	}
	return append(errs, validateEnds(now, was, &old.Spec, at)...)
}

func notNegative(generation int64, at *field.Path) field.ErrorList {
	if generation >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, generation, "must be a non-negative integer")}
}

func validateConditions(conditions []corev1.PodCondition, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range conditions {
		if !systemConditions[c.Type] {
			errs = append(errs, check.QualifiedName(string(c.Type), at.Index(i).Child("Type"))...)
		}
		errs = append(errs, notNegative(c.ObservedGeneration, at.Index(i).Child("observedGeneration"))...)
	}
	return errs
}

// systemConditions are conditions whose names need no check.
var systemConditions = map[corev1.PodConditionType]bool{
	corev1.PodScheduled: true, corev1.PodReady: true, corev1.PodInitialized: true, corev1.ContainersReady: true,
}

// validateStatusAddresses validates new addresses.
func validateStatusAddresses(now, was *corev1.PodStatus, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Equal(now.PodIPs, was.PodIPs) {
		errs = append(errs, oneOfEachFamily(podAddresses(now), podAddresses(was), at.Child("podIPs"))...)
	}
	if slices.Equal(now.HostIPs, was.HostIPs) || len(now.HostIPs) == 0 {
		return errs
	}
	hosts := at.Child("hostIPs")
	if first := now.HostIPs[0].IP; first != now.HostIP {
		errs = append(errs, field.Invalid(hosts.Index(0).Child("ip"), first, "must be equal to `hostIP`"))
	}
	return append(errs, oneOfEachFamily(hostAddresses(now), hostAddresses(was), hosts)...)
}

func podAddresses(status *corev1.PodStatus) (all []string) {
	for _, a := range status.PodIPs {
		all = append(all, a.IP)
	}
	return all
}

func hostAddresses(status *corev1.PodStatus) (all []string) {
	for _, a := range status.HostIPs {
		all = append(all, a.IP)
	}
	return all
}

// oneOfEachFamily checks that there is at most one IPv4 and one IPv6 address. Those from
// before may have any form, new ones need not be canonical (KEP-4858).
func oneOfEachFamily(addresses, before []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, text := range addresses {
		errs = append(errs, validation.IsValidIPForLegacyField(at.Index(i).Upstream(), text, true, before)...)
	}
	if len(addresses) < 2 {
		return errs
	}
	both, err := netutils.IsDualStackIPStrings(addresses)
	if err != nil {
		errs = append(errs, field.InternalError(at, fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !both || len(addresses) > 2 {
		type shown struct{ IP string }
		var all []shown
		for _, text := range addresses {
			all = append(all, shown{text})
		}
		errs = append(errs, field.Invalid(at, all, "may specify no more than one IP for each IP family"))
	}
	return errs
}
