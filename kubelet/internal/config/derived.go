package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"kctl/kubelet/internal/cgroup"
	"kctl/proto/release"
)

// Gates are those of upstream's feature gates whose features this kubelet
// always has, or never, unlike upstream's defaults.
var Gates = map[string]bool{
	"EventedPLEG": true, "PodAndContainerStatsFromCRI": true,
	"AtomicWriteVolumeUserFields": true, "ContainerStopSignals": true, "EmptyDirVolumeMode": true,
	"PodLogsQuerySplitStreams": true, "TaintTolerationComparisonOperators": true,

	"PodsAPI": false, "ExtendWebSocketsToKubelet": false,
	"ResourceHealthStatus": false, "ResourceHealthStatusMessage": false,
	"CPUManagerPolicyOptions": false, "CPUManagerPolicyBetaOptions": false,
	"TopologyManagerPolicyOptions": false, "TopologyManagerPolicyBetaOptions": false,
	"DRAConsumableCapacity": false, "DRAPartitionableDevices": false, "DRADeviceBindingConditions": false,
	"DynamicResourceAllocation": false, "DRAExtendedResource": false,
	"KubeletPodResourcesGet": false, "KubeletPodResourcesDynamicResources": false, "KubeletPodResourcesListUseActivePods": false,
}

// byField are the gates of features that are there for pods and requests with a field of theirs.
// Whether the API has these fields is for its server's gates to say, so that these make no
// difference here, however they are set.
var byField = []string{
	"AtomicWriteVolumeUserFields", "ContainerStopSignals", "EmptyDirVolumeMode", "PodLogsQuerySplitStreams",
	"TaintTolerationComparisonOperators",
}

// setting is a setting that asks for the feature of a gate.
type setting struct {
	name string
	used bool
}

// bySetting are the gates of features that do nothing here unless a setting asks for them: without
// it, turning one off makes no difference.
func (c *Config) bySetting() map[string]setting {
	return map[string]setting{
		"CustomCPUCFSQuotaPeriod":                {"cpuCFSQuotaPeriod", c.Cgroups.CPUCFSQuotaPeriod != New().Cgroups.CPUCFSQuotaPeriod},
		"GracefulNodeShutdownBasedOnPodPriority": {"shutdownGracePeriodByPodPriority", len(c.Shutdown.GracePeriodByPodPriority) > 0},
		"KubeletCrashLoopBackOffMax": {"crashLoopBackOff.maxContainerRestartPeriod",
			c.MaxContainerRestartPeriod != New().MaxContainerRestartPeriod},
		memoryQoS: {"memoryThrottlingFactor or memoryReservationPolicy",
			c.Cgroups.MemoryQoS != cgroup.MemoryQoS{} && c.Cgroups.MemoryQoS != cgroup.MemoryQoS{ThrottlingFactor: formerFactor}},
		"RotateKubeletServerCertificate": {"serverTLSBootstrap", c.ServerTLSBootstrap},
	}
}

const memoryQoS = "MemoryQoS"

// formerFactor was upstream's default of memoryThrottlingFactor before 1.37, and may be left
// in a configuration that has MemoryQoS off.
const formerFactor = 0.9

// MemoryQoS is what the settings ask for, unless the gate is off.
func (c *Config) MemoryQoS() cgroup.MemoryQoS {
	if !c.ProtectsDaemons() {
		return cgroup.MemoryQoS{}
	}
	return c.Cgroups.MemoryQoS
}

// ProtectsDaemons reports whether memory that is reserved for daemons, and enforced, is kept for
// them, with cgroup v2: unless the gate MemoryQoS is off.
func (c *Config) ProtectsDaemons() bool {
	on, err := strconv.ParseBool(c.FeatureGates[memoryQoS])
	return on || err != nil
}

// checkGates refuses feature gates that would have to change what this kubelet does.
func (c *Config) checkGates() error {
	gates, errs := maps.Clone(c.FeatureGates), []error(nil)
	bySetting := c.bySetting()
	maps.DeleteFunc(gates, func(name, value string) bool {
		on, err := strconv.ParseBool(value)
		asks, is := bySetting[name]
		switch {
		case err != nil:
			return false
		case !is || on:
			return slices.Contains(byField, name)
		case asks.used:
			errs = append(errs, fmt.Errorf("--feature-gates=%s=%s: %s needs it", name, value, asks.name))
		}
		return true
	})
	return errors.Join(append(errs, release.CheckGates(gates, Gates))...)
}

// DeclaredFeatures are those that the node declares (KEP-5328): the ones of
// Kubernetes 1.37's list that this kubelet has.
func (*Config) DeclaredFeatures() []string {
	return []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers",
		"RestartAllContainersOnContainerExits"}
}

// MaxPodsFor is the maximum number of pods on a machine with the given number of cores.
func (c *Config) MaxPodsFor(cores int64) int64 {
	if c.PodsPerCore > 0 {
		return min(int64(c.MaxPods), int64(c.PodsPerCore)*cores)
	}
	return int64(c.MaxPods)
}
