package pod

import (
	"fmt"
	"math"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

// validateEnds checks that containers leave their end only as the pod has them restarted: by their
// own rules or policy or the pod's, or because the end of one may restart all (KEP-5307, KEP-5532).
// Ephemeral containers never do.
func validateEnds(now, was *core.PodStatus, spec *core.PodSpec, at *field.Path) field.ErrorList {
	never := func(*core.ContainerStatus) bool { return false }
	errs := stayTerminated(now.EphemeralContainerStatuses, was.EphemeralContainerStatuses, never, at.Child("ephemeralContainerStatuses"))
	if core.MayStartOver(spec) {
		return errs
	}
	restarts := func(containers []core.Container) func(*core.ContainerStatus) bool {
		named := sync.OnceValue(func() map[string]*core.Container { return containersByName(containers) })
		return func(ended *core.ContainerStatus) bool {
			c := named()[ended.Name]
			return c != nil && core.Restarts(spec, c, ended.State.Terminated.ExitCode)
		}
	}
	errs = append(errs, stayTerminated(now.ContainerStatuses, was.ContainerStatuses, restarts(spec.Containers),
		at.Child("containerStatuses"))...)
	return append(errs, stayTerminated(now.InitContainerStatuses, was.InitContainerStatuses, restarts(spec.InitContainers),
		at.Child("initContainerStatuses"))...)
}

func stayTerminated(now, was []core.ContainerStatus, restarts func(ended *core.ContainerStatus) bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	var living map[string]bool // found when it is needed: most containers have not ended
	for i := range was {
		ended := &was[i]
		if ended.State.Terminated == nil {
			continue
		}
		if living == nil {
			living = notTerminated(now)
		}
		if living[ended.Name] && !restarts(ended) {
			errs = append(errs, field.Forbidden(at.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return errs
}

func notTerminated(statuses []core.ContainerStatus) map[string]bool {
	out := map[string]bool{}
	for i := range statuses {
		if statuses[i].State.Terminated == nil {
			out[statuses[i].Name] = true
		}
	}
	return out
}

// validateContainerUsers validates as whom containers run. The runtime reports it, so that
// user IDs may be any that Linux has.
func validateContainerUsers(statuses []core.ContainerStatus, os *corev1.PodOS, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range statuses {
		if statuses[i].User == nil || statuses[i].User.Linux == nil {
			continue
		}
		user, at := statuses[i].User.Linux, at.Index(i).Child("user", "linux")
		switch {
		case os != nil && os.Name == corev1.Windows:
			errs = append(errs, field.Forbidden(at, "cannot be set for a windows pod"))
			continue
		case os != nil && os.Name != corev1.Linux:
			continue
		}
		if user.UID < 0 || user.UID > math.MaxUint32 {
			errs = append(errs, field.Invalid(at.Child("uid"), user.UID, fmt.Sprintf("must be between 0 and %d, inclusive", int64(math.MaxUint32))))
		}
		errs = append(errs, groupID(&user.GID, at.Child("gid"))...)
		for g := range user.SupplementalGroups {
			errs = append(errs, groupID(&user.SupplementalGroups[g], at.Child("supplementalGroups").Index(g))...)
		}
	}
	return errs
}
