package runtimeconfig

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/image"
	"kctl/proto/core"
)

// readonlyPaths are those of /proc that containers can't write to, unless they ask for an
// unmasked /proc.
var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// maskedPaths are those of /proc and /sys that containers see as empty, unless they ask for an
// unmasked /proc. The runtime masks only what it is told.
var maskedPaths = sync.OnceValue(func() []string { return masksOf("/sys") })

// masksOf are the masked paths of a machine whose /sys is at the given path. Counters of how
// often a processor was too hot, or interrupted, tell containers what others compute.
func masksOf(sys string) []string {
	masked := []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}
	counters, _ := filepath.Glob(filepath.Join(sys, "devices/system/cpu/cpu[0-9]*/thermal_throttle")) // the pattern is valid
	for _, path := range counters {
		masked = append(masked, "/sys"+strings.TrimPrefix(path, sys))
	}
	return masked
}

// effectiveSecurity is the container's security context, with the pod's values
// where it has none. It is never nil.
func effectiveSecurity(pod *core.Pod, c *core.Container) *corev1.SecurityContext {
	e := &corev1.SecurityContext{}
	if c.SecurityContext != nil {
		e = c.SecurityContext.DeepCopy()
	}
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return e
	}
	e.RunAsUser = cmp.Or(e.RunAsUser, sc.RunAsUser)
	e.RunAsGroup = cmp.Or(e.RunAsGroup, sc.RunAsGroup)
	e.RunAsNonRoot = cmp.Or(e.RunAsNonRoot, sc.RunAsNonRoot)
	e.SELinuxOptions = cmp.Or(e.SELinuxOptions, sc.SELinuxOptions)
	e.SeccompProfile = cmp.Or(e.SeccompProfile, sc.SeccompProfile)
	e.AppArmorProfile = cmp.Or(e.AppArmorProfile, sc.AppArmorProfile)
	return e
}

func (m *Maker) linuxSecurity(pod *core.Pod, c *core.Container, present image.Present) (*runtimeapi.LinuxContainerSecurityContext, error) {
	e := effectiveSecurity(pod, c)
	if err := verifyNonRoot(pod, c, e, present); err != nil {
		return nil, err
	}
	seccomp, err := m.seccomp(e.SeccompProfile)
	if err != nil {
		return nil, err
	}
	security := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions:   namespaces(pod),
		Privileged:         ptr.Deref(e.Privileged, false),
		ReadonlyRootfs:     ptr.Deref(e.ReadOnlyRootFilesystem, false),
		NoNewPrivs:         e.AllowPrivilegeEscalation != nil && !*e.AllowPrivilegeEscalation,
		RunAsUser:          int64Value(e.RunAsUser),
		RunAsGroup:         int64Value(e.RunAsGroup),
		SupplementalGroups: m.podGroups(pod),
		SelinuxOptions:     selinux(e.SELinuxOptions),
		Seccomp:            seccomp,
		Apparmor:           appArmor(e.AppArmorProfile),
		MaskedPaths:        maskedPaths(),
		ReadonlyPaths:      readonlyPaths,
	}
	if pod.Spec.SecurityContext != nil {
		security.SupplementalGroupsPolicy = groupsPolicy(pod.Spec.SecurityContext)
	}
	if e.ProcMount != nil && *e.ProcMount == corev1.UnmaskedProcMount {
		security.MaskedPaths, security.ReadonlyPaths = []string{}, []string{}
	}
	if e.RunAsUser == nil {
		switch {
		case present.UID != nil:
			security.RunAsUser = int64Value(present.UID)
		case present.Username != "":
			security.RunAsUsername = present.Username
		default: // root, by number: the runtime takes no group without a user
			security.RunAsUser = int64Value(new(int64))
		}
	}
	if e.Capabilities != nil {
		security.Capabilities = &runtimeapi.Capability{
			AddCapabilities:  capabilities(e.Capabilities.Add),
			DropCapabilities: capabilities(e.Capabilities.Drop),
		}
	}
	return security, nil
}

// verifyNonRoot enforces a container's runAsNonRoot.
func verifyNonRoot(pod *core.Pod, c *core.Container, e *corev1.SecurityContext, present image.Present) error {
	if !ptr.Deref(e.RunAsNonRoot, false) {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), c.Name)
	switch {
	case e.RunAsUser != nil && *e.RunAsUser == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s", where)
	case e.RunAsUser != nil:
		return nil
	case present.UID == nil && present.Username != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s",
			present.Username, where)
	case present.UID == nil, *present.UID == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	}
	return nil
}

func (m *Maker) seccomp(profile *corev1.SeccompProfile) (*runtimeapi.SecurityProfile, error) {
	if profile == nil && m.SeccompDefault {
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	}
	if profile == nil {
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	}
	switch profile.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	case corev1.SeccompProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	case corev1.SeccompProfileTypeLocalhost:
		if profile.LocalhostProfile == nil || !filepath.IsLocal(*profile.LocalhostProfile) {
			return nil, fmt.Errorf("seccompProfile: localhostProfile must be a path below %s", m.SeccompRoot)
		}
		return &runtimeapi.SecurityProfile{
			ProfileType:  runtimeapi.SecurityProfile_Localhost,
			LocalhostRef: filepath.Join(m.SeccompRoot, *profile.LocalhostProfile),
		}, nil
	}
	return nil, fmt.Errorf("seccompProfile type %q is not supported", profile.Type)
}

func appArmor(profile *corev1.AppArmorProfile) *runtimeapi.SecurityProfile {
	if profile == nil {
		return nil
	}
	switch profile.Type {
	case corev1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case corev1.AppArmorProfileTypeLocalhost:
		ref := ""
		if profile.LocalhostProfile != nil {
			ref = *profile.LocalhostProfile
		}
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: ref}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
}

func selinux(o *corev1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// podGroups are the supplementary groups of all containers' processes.
func (m *Maker) podGroups(pod *core.Pod) []int64 {
	var groups []int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		if sc.FSGroup != nil {
			groups = append(groups, *sc.FSGroup)
		}
		groups = append(groups, sc.SupplementalGroups...)
	}
	if m.VolumeGroups == nil {
		return groups
	}
	for _, group := range m.VolumeGroups(pod.UID) {
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

func groupsPolicy(sc *corev1.PodSecurityContext) runtimeapi.SupplementalGroupsPolicy {
	if sc.SupplementalGroupsPolicy != nil && *sc.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict {
		return runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return runtimeapi.SupplementalGroupsPolicy_Merge
}

func capabilities(list []corev1.Capability) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = string(c)
	}
	return names
}

func int64Value(n *int64) *runtimeapi.Int64Value {
	if n == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *n}
}
