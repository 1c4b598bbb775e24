package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opencontainers/cgroups"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/shutdown"
	"kctl/proto/daemon"
)

// machine returns the capacity and system data that the node reports.
func (k *Kubelet) machine() (node.Machine, error) {
	if k.hollow != nil {
		return k.hollow.Machine, nil
	}
	return node.ReadMachine(k.config.RootDir)
}

// checkMachine returns why the configuration forbids this machine; nil if it
// does not.
func (k *Kubelet) checkMachine(machine node.Machine) error {
	if k.config.ProtectKernelDefaults {
		if err := node.CheckKernel("/proc/sys"); err != nil {
			return fmt.Errorf("--protect-kernel-defaults is set: %w", err)
		}
	}
	if k.config.FailCgroupV1 && !cgroups.IsCgroup2UnifiedMode() {
		return errors.New("the machine has cgroup v1, and --fail-cgroupv1 is set")
	}
	if machine.Swap > 0 && k.config.FailSwapOn {
		return errors.New("the machine has swap, and --fail-swap-on is set")
	}
	return nil
}

// makeNode creates the node manager, and the eviction manager, whose conditions
// the node reports.
func (k *Kubelet) makeNode(logger *zap.Logger) error {
	machine, err := k.machine()
	if err != nil {
		return err
	}
	if err := k.checkMachine(machine); err != nil {
		return err
	}
	thresholds, err := k.config.Eviction.Thresholds()
	if err != nil {
		return err
	}
	reserved, err := k.config.Reserved()
	if err != nil {
		return err
	}
	k.makeEviction(thresholds)
	kept := config.SumOf(reserved, eviction.HardEvictionReservation(thresholds, machine.Memory, machine.EphemeralStorage))
	if !k.config.LocalStorageCapacityIsolation {
		machine.EphemeralStorage = 0
	}
	k.node = node.New(node.Config{
		Client: k.client, Name: k.nodeName, Hostname: k.nodeName, Addresses: k.hostIPs,
		Labels: k.config.NodeLabels, Taints: k.config.RegisterWithTaints, PodCIDR: k.config.PodCIDR, Register: k.config.RegisterNode,
		CloudProviderExternal: k.config.CloudProvider != "", GivenIP: k.config.NodeIP, ProviderID: k.config.ProviderID,
		Machine: machine, MaxPods: k.config.MaxPodsFor(machine.CPUs), Reserved: kept, UnderPressure: k.eviction.IsUnderPressure,
		Port: k.port.Load, Version: daemon.Version().GitVersion, DeclaredFeatures: k.config.DeclaredFeatures(), Runtime: nodeRuntime{k}, Events: k.events,
		StatusUpdateFrequency: k.config.NodeStatusUpdateFrequency, StatusReportFrequency: k.config.NodeStatusReportFrequency, LeaseDuration: k.config.LeaseDuration,
		Startup: k.metrics.ObserveStartup, Clock: k.clock, Logger: logger,
	})
	return nil
}

const (
	// maxImageNames is the number of names that the node reports of an image.
	maxImageNames = 5
	// maxImageName is longer than any reference. The API would refuse the node's status with
	// names of megabytes.
	maxImageName = 1024
)

// nodeRuntime is what the node reports about the runtime.
type nodeRuntime struct{ k *Kubelet }

func (n nodeRuntime) RuntimeVersion() string { return n.k.health.RuntimeVersion() }

// Features returns the handlers' features from the runtime's status.
func (n nodeRuntime) Features() node.RuntimeFeatures {
	status := n.k.health.Reported()
	var features node.RuntimeFeatures
	for _, handler := range status.GetRuntimeHandlers() {
		one := corev1.NodeRuntimeHandler{Name: handler.GetName()}
		if f := handler.GetFeatures(); f != nil {
			one.Features = &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &f.RecursiveReadOnlyMounts, UserNamespaces: &f.UserNamespaces}
		}
		features.Handlers = append(features.Handlers, one)
	}
	slices.SortFunc(features.Handlers, func(a, b corev1.NodeRuntimeHandler) int { return cmp.Compare(a.Name, b.Name) })
	if f := status.GetFeatures(); f != nil {
		features.Node = &corev1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}
	}
	return features
}

func (n nodeRuntime) NotReady() []string {
	var reasons []string
	if n.k.shutdown.ShuttingDown() {
		reasons = append(reasons, shutdown.NotReady)
	}
	errs := []error{n.k.health.RuntimeError(), n.k.health.NetworkError()}
	if n.k.pleg != nil {
		errs = append(errs, n.k.pleg.Healthy())
	}
	for _, err := range errs {
		if err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return reasons
}

func (n nodeRuntime) UpdatePodCIDRs(ctx context.Context, cidrs string) error {
	return n.k.cri.UpdateRuntimeConfig(ctx, cidrs)
}

func (n nodeRuntime) Images(ctx context.Context) ([]corev1.ContainerImage, error) {
	images, err := n.k.cri.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]corev1.ContainerImage, 0, len(images))
	for _, image := range images {
		names := slices.DeleteFunc(slices.Concat(image.GetRepoDigests(), image.GetRepoTags()), func(name string) bool { return len(name) > maxImageName })
		listed = append(listed, corev1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(min(image.GetSize(), math.MaxInt64))})
	}
	slices.SortFunc(listed, func(a, b corev1.ContainerImage) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), slices.Compare(a.Names, b.Names))
	})
	if most := int(n.k.config.NodeStatusMaxImages); most >= 0 {
		listed = listed[:min(len(listed), most)]
	}
	return listed, nil
}
