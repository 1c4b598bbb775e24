package admit

import (
	"errors"
	"slices"
	"strings"

	"kctl/proto/core"
)

// safeSysctls are those that affect only the pod itself: upstream's list.
var safeSysctls = []string{
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ping_group_range",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.tcp_wmem",
}

// namespaced are those that a pod can have for itself; others are the node's.
var namespaced = []string{"kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "net."}

// CheckSysctlPattern checks a pattern of sysctls that pods are to be allowed;
// it may end in *.
func CheckSysctlPattern(pattern string) error {
	prefix := strings.TrimSuffix(dotted(pattern), "*")
	if !slices.ContainsFunc(namespaced, func(p string) bool { return strings.HasPrefix(prefix, p) }) || strings.Contains(prefix, "*") {
		return errors.New("it is not a pod's own: those of " + strings.Join(namespaced, "*, ") + "* are")
	}
	return nil
}

func dotted(name string) string { return strings.ReplaceAll(name, "/", ".") }

// Sysctls decides whether the pod may set its sysctls: safe ones, and those
// that the patterns name.
func Sysctls(pod *core.Pod, patterns []string) Decision {
	if pod.Spec.SecurityContext == nil {
		return Decision{Admitted: true}
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		name := dotted(s.Name)
		shared := strings.HasPrefix(name, "net.") && pod.Spec.HostNetwork || sharedWithIPC(name) && pod.Spec.HostIPC
		if shared || !slices.Contains(safeSysctls, name) && !named(name, patterns) {
			return Refuse(reasonSysctl, "forbidden sysctl: %q not allowlisted", s.Name)
		}
	}
	return Decision{Admitted: true}
}

func sharedWithIPC(name string) bool {
	return strings.HasPrefix(name, "kernel.") || strings.HasPrefix(name, "fs.mqueue.")
}

func named(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(dotted(pattern), "*")
		return name == prefix || open && strings.HasPrefix(name, prefix)
	})
}
