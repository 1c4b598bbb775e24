package config

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
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

// Allocatable is what of the machine is kept for the system and for Kubernetes' own programs,
// and what is held to its bounds.
type Allocatable struct {
	// Enforce says what limits are enforced on: all pods together, the daemons in the groups
	// below, or nothing.
	Enforce []string
	// SystemReservedCgroup and KubeReservedCgroup are the control groups of the machine's and
	// of Kubernetes' daemons, which others have made.
	SystemReservedCgroup, KubeReservedCgroup string
	SystemReserved                           corev1.ResourceList
	KubeReserved                             corev1.ResourceList
	ReservedCPUs                             string // no cpu of these is for pods, whatever the two above say
}

func newAllocatable() Allocatable { return Allocatable{Enforce: []string{enforcePods}} }

// EnforcesPods says that all pods together are limited to what is not reserved.
func (a *Allocatable) EnforcesPods() bool { return slices.Contains(a.Enforce, enforcePods) }

// BoundDaemons are daemons in a control group of their own, which is held to what is
// reserved for them.
type BoundDaemons struct {
	Whose        string // "system" or "kube"
	Group        string
	Reserved     corev1.ResourceList
	Compressible bool // their share of cpu only
}

// BoundDaemons are those that are to be held to their bounds, the system's first.
func (a *Allocatable) BoundDaemons() []BoundDaemons {
	var all []BoundDaemons
	for _, d := range []struct {
		enforced string
		daemons  BoundDaemons
	}{
		{enforceSystem, BoundDaemons{Whose: "system", Group: a.SystemReservedCgroup, Reserved: a.SystemReserved}},
		{enforceKube, BoundDaemons{Whose: "kube", Group: a.KubeReservedCgroup, Reserved: a.KubeReserved}},
	} {
		d.daemons.Compressible = slices.Contains(a.Enforce, d.enforced+compressible)
		if d.daemons.Compressible || slices.Contains(a.Enforce, d.enforced) {
			all = append(all, d.daemons)
		}
	}
	return all
}

// validate is told whether there are control groups for each QoS class.
func (a *Allocatable) validate(add report, perQOS bool) {
	known := []string{enforcePods, enforceSystem, enforceSystem + compressible, enforceKube, enforceKube + compressible, enforceNone}
	groups := map[string]string{enforceSystem: a.SystemReservedCgroup, enforceKube: a.KubeReservedCgroup}
	reserved := map[string]corev1.ResourceList{enforceSystem: a.SystemReserved, enforceKube: a.KubeReserved}
	seen := map[string]bool{}
	for _, whom := range a.Enforce {
		plain := strings.TrimSuffix(whom, compressible)
		group, daemons := groups[plain]
		switch {
		case !slices.Contains(known, whom):
			add("--enforce-node-allocatable=%s: there are %q", whom, known)
		case seen[plain]:
			add("--enforce-node-allocatable: %s twice", plain)
		case whom == enforceNone && len(a.Enforce) > 1:
			add("--enforce-node-allocatable: nothing else may be enforced together with %s", enforceNone)
		case daemons && group == "":
			add("--enforce-node-allocatable=%s: --%s-cgroup must say which control group its processes are in", whom, plain)
		case daemons && !perQOS:
			add("--enforce-node-allocatable=%s: it needs --cgroups-per-qos", whom)
		case daemons && len(reserved[plain]) == 0:
			add("--enforce-node-allocatable=%s: --%s must say what is reserved", whom, plain)
		}
		seen[plain] = true
	}
	if a.ReservedCPUs != "" && (a.SystemReservedCgroup != "" || a.KubeReservedCgroup != "") {
		add("--reserved-cpus can't be used with --%s-cgroup or --%s-cgroup", enforceSystem, enforceKube)
	}
	if _, err := a.Reserved(); err != nil {
		add("%w", err)
	}
}

// Reserved is the part of the machine that is kept for the system and for
// Kubernetes' own programs.
func (a *Allocatable) Reserved() (corev1.ResourceList, error) {
	sum := SumOf(a.SystemReserved, a.KubeReserved)
	if a.ReservedCPUs != "" {
		cpus, err := cpuset.Parse(a.ReservedCPUs)
		if err != nil {
			return nil, fmt.Errorf("--reserved-cpus=%s: %w", a.ReservedCPUs, err)
		}
		sum[corev1.ResourceCPU] = *resource.NewQuantity(int64(cpus.Size()), resource.DecimalSI)
	}
	return sum, nil
}

// SumOf adds up amounts, by resource.
func SumOf(lists ...corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}
