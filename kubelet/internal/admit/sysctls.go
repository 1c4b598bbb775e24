package admit

import (
	"slices"
	"strings"

	"kctl/proto/core"
)

// safeSysctls are those that a pod may set without reaching beyond itself:
// upstream's list.
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

// forbiddenSysctl finds one that the pod may not set: one that is not safe, or
// that would be the node's own.
func forbiddenSysctl(pod *core.Pod) (name string, found bool) {
	if pod.Spec.SecurityContext == nil {
		return "", false
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		dotted := strings.ReplaceAll(s.Name, "/", ".")
		shared := strings.HasPrefix(dotted, "net.") && pod.Spec.HostNetwork || strings.HasPrefix(dotted, "kernel.shm") && pod.Spec.HostIPC
		if shared || !slices.Contains(safeSysctls, dotted) {
			return s.Name, true
		}
	}
	return "", false
}
