package kubelet

import (
	"errors"
	"fmt"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/noderuntime"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// machine returns the capacity and system data that the node reports.
func (g *given) machine() (node.Machine, error) {
	if g.hollow != nil {
		return g.hollow.Machine, nil
	}
	return node.ReadMachine(g.config.RootDir)
}

// checkMachine returns why the configuration forbids this machine; nil if it
// does not.
func (g *given) checkMachine(machine node.Machine) error {
	if g.config.ProtectKernelDefaults {
		if err := node.CheckKernel("/proc/sys"); err != nil {
			return fmt.Errorf("--protect-kernel-defaults is set: %w", err)
		}
	}
	if g.config.Cgroups.FailV1 && !cgroups.IsCgroup2UnifiedMode() {
		return errors.New("the machine has cgroup v1, and --fail-cgroupv1 is set")
	}
	if machine.Swap > 0 && g.config.FailSwapOn {
		return errors.New("the machine has swap, and --fail-swap-on is set")
	}
	return nil
}

// secretsMaySwap reports whether the node has swap, from which its kernel can't keep what is in memory only.
func secretsMaySwap(node *core.Node, noSwap func() (bool, error)) (bool, error) {
	if swap := node.Status.NodeInfo.Swap; swap == nil || *swap.Capacity == 0 {
		return false, nil
	}
	kept, err := noSwap()
	return !kept && err == nil, err
}

// newNode makes the node manager. The node tells what rooms find that are made later.
func (k *Kubelet) newNode() (*node.Manager, error) {
	machine, err := k.machine()
	if err != nil {
		return nil, err
	}
	if err := k.checkMachine(machine); err != nil {
		return nil, err
	}
	thresholds, err := k.config.Eviction.Thresholds()
	if err != nil {
		return nil, err
	}
	reserved, err := k.config.Allocatable.Reserved()
	if err != nil {
		return nil, err
	}
	kept := config.SumOf(reserved, eviction.HardEvictionReservation(thresholds, machine.Memory, machine.EphemeralStorage))
	if !k.config.LocalStorageCapacityIsolation {
		machine.EphemeralStorage = 0
	}
	if err := machine.CheckReserved(kept); err != nil {
		return nil, err
	}
	return node.New(node.Config{
		Client: k.client, Events: k.events, Clock: k.clock, Logger: k.logger,
		Name: k.identity.NodeName, Hostname: k.identity.NodeName, Addresses: k.identity.FindHostIPs, Port: k.servers.Port,
		Register: k.config.RegisterNode, Labels: k.config.NodeLabels, Taints: k.config.RegisterWithTaints, PodCIDR: k.config.PodCIDR,
		CloudProviderExternal: k.config.CloudProvider != "", GivenIP: k.config.NodeIP, ProviderID: k.config.ProviderID,
		Machine: machine, MaxPods: k.config.MaxPodsFor(machine.CPUs), Reserved: kept, UnderPressure: k.underPressure,
		AttachedMounted: func() bool { return node.AttachedMounted(k.config.RootDir) },
		Version:         daemon.Version().GitVersion, DeclaredFeatures: k.config.DeclaredFeatures(),
		Runtime: noderuntime.Runtime{
			Health: k.health, CRI: k.cri, MostImages: int(k.config.NodeStatus.MaxImages),
			ShuttingDown: func() bool { return k.shutdown.ShuttingDown() }, Relisting: func() error { return k.pleg.Healthy() },
		},
		StatusUpdateFrequency: k.config.NodeStatus.UpdateFrequency, StatusReportFrequency: k.config.NodeStatus.ReportFrequency,
		LeaseDuration: k.config.NodeStatus.LeaseDuration, Startup: k.metrics.ObserveStartup,
	}), nil
}

// underPressure says what the eviction found; nothing before there is one.
func (k *Kubelet) underPressure(condition corev1.NodeConditionType) bool {
	return k.eviction != nil && k.eviction.IsUnderPressure(condition)
}
