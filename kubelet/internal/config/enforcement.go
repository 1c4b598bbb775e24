package config

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// What may be held to its bounds, as --enforce-node-allocatable names it. A suffix has only
// the share of cpu enforced.
const (
	enforcePods   = "pods"
	enforceSystem = "system-reserved"
	enforceKube   = "kube-reserved"
	enforceNone   = "none"
	compressible  = "-compressible"
)

// EnforcesPods says that all pods together are limited to what is not reserved.
func (c *Config) EnforcesPods() bool { return slices.Contains(c.EnforceNodeAllocatable, enforcePods) }

// BoundDaemons are daemons in a control group of their own, which is held to what is
// reserved for them.
type BoundDaemons struct {
	Whose        string // "system" or "kube"
	Group        string
	Reserved     corev1.ResourceList
	Compressible bool // their share of cpu only
}

// BoundDaemons are those that are to be held to their bounds, the system's first.
func (c *Config) BoundDaemons() []BoundDaemons {
	var all []BoundDaemons
	for _, d := range []struct {
		enforced string
		daemons  BoundDaemons
	}{
		{enforceSystem, BoundDaemons{Whose: "system", Group: c.SystemReservedCgroup, Reserved: c.SystemReserved}},
		{enforceKube, BoundDaemons{Whose: "kube", Group: c.KubeReservedCgroup, Reserved: c.KubeReserved}},
	} {
		d.daemons.Compressible = slices.Contains(c.EnforceNodeAllocatable, d.enforced+compressible)
		if d.daemons.Compressible || slices.Contains(c.EnforceNodeAllocatable, d.enforced) {
			all = append(all, d.daemons)
		}
	}
	return all
}

// validateEnforcement checks what is held to its bounds.
func (c *Config) validateEnforcement(add func(format string, args ...any)) {
	known := []string{enforcePods, enforceSystem, enforceSystem + compressible, enforceKube, enforceKube + compressible, enforceNone}
	groups := map[string]string{enforceSystem: c.SystemReservedCgroup, enforceKube: c.KubeReservedCgroup}
	reserved := map[string]corev1.ResourceList{enforceSystem: c.SystemReserved, enforceKube: c.KubeReserved}
	seen := map[string]bool{}
	for _, whom := range c.EnforceNodeAllocatable {
		plain := strings.TrimSuffix(whom, compressible)
		group, daemons := groups[plain]
		switch {
		case !slices.Contains(known, whom):
			add("--enforce-node-allocatable=%s: there are %q", whom, known)
		case seen[plain]:
			add("--enforce-node-allocatable: %s twice", plain)
		case whom == enforceNone && len(c.EnforceNodeAllocatable) > 1:
			add("--enforce-node-allocatable: nothing else may be enforced together with %s", enforceNone)
		case daemons && group == "":
			add("--enforce-node-allocatable=%s: --%s-cgroup must say which control group its processes are in", whom, plain)
		case daemons && !c.CgroupsPerQOS:
			add("--enforce-node-allocatable=%s: it needs --cgroups-per-qos", whom)
		case daemons && len(reserved[plain]) == 0:
			add("--enforce-node-allocatable=%s: --%s must say what is reserved", whom, plain)
		}
		seen[plain] = true
	}
	if c.ReservedSystemCPUs != "" && (c.SystemReservedCgroup != "" || c.KubeReservedCgroup != "") {
		add("--reserved-cpus can't be used with --%s-cgroup or --%s-cgroup", enforceSystem, enforceKube)
	}
}
