package pod

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

const (
	maxSysctlLength = 253
	sysctlPattern   = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
)

var (
	sysctlName      = regexp.MustCompile("^" + sysctlPattern + "$")
	groupChanges    = []corev1.PodFSGroupChangePolicy{corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways}
	groupPolicies   = []corev1.SupplementalGroupsPolicy{corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict}
	selinuxChanges  = []corev1.PodSELinuxChangePolicy{corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive}
	seccompProfiles = []corev1.SeccompProfileType{corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault,
		corev1.SeccompProfileTypeUnconfined}
	apparmorProfiles = []corev1.AppArmorProfileType{corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault,
		corev1.AppArmorProfileTypeUnconfined}
	procMounts         = []corev1.ProcMountType{corev1.DefaultProcMount, corev1.UnmaskedProcMount}
	maxApparmorProfile = 4095
)

func validatePodSecurity(spec *core.PodSpec, at *field.Path) field.ErrorList {
	errs := validateHostNamespaces(spec, at)
	sc, path := spec.SecurityContext, at.Child("securityContext")
	if sc == nil {
		return errs
	}
	errs = append(errs, validateIDs(sc.RunAsUser, sc.RunAsGroup, path)...)
	errs = append(errs, groupID(sc.FSGroup, path.Child("fsGroup"))...)
	for i := range sc.SupplementalGroups {
		errs = append(errs, groupID(&sc.SupplementalGroups[i], path.Child("supplementalGroups").Index(i))...)
	}
	errs = append(errs, validateSysctls(sc.Sysctls, spec, path.Child("sysctls"))...)
	if sc.FSGroupChangePolicy != nil {
		errs = append(errs, check.Supported(*sc.FSGroupChangePolicy, path.Child("fsGroupChangePolicy"), groupChanges...)...)
	}
	if sc.SupplementalGroupsPolicy != nil {
		errs = append(errs, check.Supported(*sc.SupplementalGroupsPolicy, path.Child("supplementalGroupsPolicy"), groupPolicies...)...)
	}
	if sc.SELinuxChangePolicy != nil {
		errs = append(errs, check.Supported(*sc.SELinuxChangePolicy, path.Child("seLinuxChangePolicy"), selinuxChanges...)...)
	}
	errs = append(errs, validateWindowsOptions(sc.WindowsOptions, path.Child("windowsOptions"))...)
	errs = append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	return append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
}

// validateHostNamespaces validates which namespaces a pod shares with its host.
func validateHostNamespaces(spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ptr.Deref(spec.ShareProcessNamespace, false) && spec.HostPID {
		errs = append(errs, field.Invalid(at.Child("shareProcessNamespace"), true,
			"ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	if spec.HostNetwork {
		for i, c := range spec.Containers {
			for j, port := range c.Ports {
				if port.HostPort != port.ContainerPort {
					path := at.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort")
					errs = append(errs, field.Invalid(path, port.HostPort, "must match `containerPort` when `hostNetwork` is true"))
				}
			}
		}
	}
	if ptr.Deref(spec.HostUsers, true) {
		return errs
	}
	const text = "when `hostUsers` is false"
	for _, host := range []struct {
		name string
		set  bool
	}{{"hostNetwork", spec.HostNetwork}, {"HostPID", spec.HostPID}, {"HostIPC", spec.HostIPC}} { // upstream's spelling
		if host.set {
			errs = append(errs, field.Forbidden(at.Child(host.name), text))
		}
	}
	return errs
}

func validateIDs(user, group *int64, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if user != nil {
		errs = append(errs, check.Messages(at.Child("runAsUser"), *user, validation.IsValidUserID(*user))...)
	}
	return append(errs, groupID(group, at.Child("runAsGroup"))...)
}

func groupID(id *int64, at *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	return check.Messages(at, *id, validation.IsValidGroupID(*id))
}

func validateSysctls(sysctls []corev1.Sysctl, spec *core.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, s := range sysctls {
		path := at.Index(i).Child("name")
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(path, ""))
		case len(s.Name) > maxSysctlLength || !sysctlName.MatchString(s.Name):
			errs = append(errs, field.Invalid(path, s.Name, fmt.Sprintf("must have at most %d characters and match regex ^%s$",
				maxSysctlLength, sysctlPattern)))
		case seen.Has(s.Name):
			errs = append(errs, field.Duplicate(path, s.Name))
		}
		seen.Insert(s.Name)
		dotted := strings.ReplaceAll(s.Name, "/", ".")
		if spec.HostNetwork && strings.HasPrefix(dotted, "net.") {
			errs = append(errs, field.Invalid(path, s.Name, "may not be specified when 'hostNetwork' is true"))
		}
		if spec.HostIPC && (strings.HasPrefix(dotted, "kernel.shm") || strings.HasPrefix(dotted, "kernel.msg") ||
			dotted == "kernel.sem" || strings.HasPrefix(dotted, "fs.mqueue.")) {
			errs = append(errs, field.Invalid(path, s.Name, "may not be specified when 'hostIPC' is true"))
		}
	}
	return errs
}

func profileType[T ~string](kind T, of string, at *field.Path, known []T) field.ErrorList {
	if kind == "" {
		return field.ErrorList{field.Required(at, "type is required when "+of+" is set")}
	}
	return check.Supported(kind, at, known...)
}

func validateSeccomp(p *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := profileType(p.Type, "seccompProfile", at.Child("type"), seccompProfiles)
	return append(errs, localhostProfile(
		p.Type == corev1.SeccompProfileTypeLocalhost, p.LocalhostProfile, check.GoFieldNames{Value: p}, "seccomp", at,
		func(profile string) field.ErrorList {
			return descendingPath(profile, at.Child("localhostProfile"))
		})...)
}

func validateAppArmor(p *corev1.AppArmorProfile, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := profileType(p.Type, "appArmorProfile", at.Child("type"), apparmorProfiles)
	return append(errs, localhostProfile(p.Type == corev1.AppArmorProfileTypeLocalhost, p.LocalhostProfile, p.LocalhostProfile, "AppArmor", at,
		func(profile string) field.ErrorList {
			path := at.Child("localhostProfile")
			switch trimmedProfile := strings.TrimSpace(profile); {
			case trimmedProfile != profile:
				return field.ErrorList{field.Invalid(path, profile, "must not be padded with whitespace")}
			case trimmedProfile == "":
				return field.ErrorList{field.Required(path, "must be set when AppArmor type is Localhost")}
			case len(profile) > maxApparmorProfile:
				return field.ErrorList{field.TooLong(path, profile, maxApparmorProfile)}
			}
			return nil
		})...)
}

// localhostProfile checks that a profile has a name exactly if its type needs
// one. shown is what an error about a name that is too much shows.
func localhostProfile(
	localhost bool, profile *string, shown any, kind string, at *field.Path, check func(string) field.ErrorList,
) field.ErrorList {
	path := at.Child("localhostProfile")
	switch {
	case localhost && profile == nil:
		return field.ErrorList{field.Required(path, "must be set when "+kind+" type is Localhost")}
	case localhost:
		return check(*profile)
	case profile != nil:
		return field.ErrorList{field.Invalid(path, shown, "can only be set when "+kind+" type is Localhost")}
	}
	return nil
}

func validateContainerSecurity(sc *corev1.SecurityContext, hostUsers bool, at *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateIDs(sc.RunAsUser, sc.RunAsGroup, at)
	if sc.ProcMount != nil {
		errs = append(errs, check.Supported(*sc.ProcMount, at.Child("procMount"), procMounts...)...)
		if hostUsers && *sc.ProcMount == corev1.UnmaskedProcMount {
			errs = append(errs, field.Invalid(at.Child("procMount"), *sc.ProcMount, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	errs = append(errs, validateWindowsOptions(sc.WindowsOptions, at.Child("windowsOptions"))...)
	errs = append(errs, validateSeccomp(sc.SeccompProfile, at.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))...)
	if ptr.Deref(sc.AllowPrivilegeEscalation, true) {
		return errs
	}
	if sc.Privileged != nil && *sc.Privileged {
		errs = append(errs, field.Invalid(at, check.GoFieldNames{Value: sc},
			"cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	if sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") {
		errs = append(errs, field.Invalid(at, check.GoFieldNames{Value: sc},
			"cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
	}
	return errs
}
