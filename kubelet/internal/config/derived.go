package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"

	"kctl/proto/release"
)

// Gates are those of upstream's feature gates whose features this kubelet
// always has, or never, unlike upstream's defaults.
var Gates = map[string]bool{
	"EventedPLEG": true, "PodAndContainerStatsFromCRI": true,
	"AtomicWriteVolumeUserFields": true, "ContainerStopSignals": true, "EmptyDirVolumeMode": true,
	"PodLogsQuerySplitStreams": true, "TaintTolerationComparisonOperators": true,

	"MemoryQoS": false, "PodsAPI": false, "ExtendWebSocketsToKubelet": false,
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
		"CustomCPUCFSQuotaPeriod":                {"cpuCFSQuotaPeriod", c.CPUCFSQuotaPeriod != New().CPUCFSQuotaPeriod},
		"GracefulNodeShutdownBasedOnPodPriority": {"shutdownGracePeriodByPodPriority", len(c.Shutdown.GracePeriodByPodPriority) > 0},
		"KubeletCrashLoopBackOffMax": {"crashLoopBackOff.maxContainerRestartPeriod",
			c.MaxContainerRestartPeriod != New().MaxContainerRestartPeriod},
		"RotateKubeletServerCertificate": {"serverTLSBootstrap", c.ServerTLSBootstrap},
	}
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

// PullsAtOnce is how many images are pulled at one time; zero for the default.
func (c *Config) PullsAtOnce() int {
	if c.SerializeImagePulls && c.MaxParallelImagePulls == 0 {
		return 1
	}
	return c.MaxParallelImagePulls
}

// DeclaredFeatures are those that the node declares (KEP-5328): the ones of
// Kubernetes 1.37's list that this kubelet has.
func (*Config) DeclaredFeatures() []string {
	return []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers",
		"RestartAllContainersOnContainerExits"}
}

// Reserved is the part of the machine that is kept for the system and for
// Kubernetes' own programs.
func (c *Config) Reserved() (corev1.ResourceList, error) {
	sum := SumOf(c.SystemReserved, c.KubeReserved)
	if c.ReservedSystemCPUs != "" {
		cpus, err := cpuset.Parse(c.ReservedSystemCPUs)
		if err != nil {
			return nil, fmt.Errorf("--reserved-cpus=%s: %w", c.ReservedSystemCPUs, err)
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

// MaxPodsFor is the maximum number of pods on a machine with the given number of cores.
func (c *Config) MaxPodsFor(cores int64) int64 {
	if c.PodsPerCore > 0 {
		return min(int64(c.MaxPods), int64(c.PodsPerCore)*cores)
	}
	return int64(c.MaxPods)
}

// validateDisk checks the limits of logs and images.
func (c *Config) validateDisk(add func(format string, args ...any)) {
	if c.ContainerLogs.MaxSize.Sign() <= 0 {
		add("--container-log-max-size=%s: a positive size is needed", &c.ContainerLogs.MaxSize)
	}
	if c.ContainerLogs.MaxFiles < 2 {
		add("--container-log-max-files=%d: two at least are needed, the present log and the one before", c.ContainerLogs.MaxFiles)
	}
	if c.ContainerLogs.Workers < 1 || c.ContainerLogs.Interval < 3*time.Second {
		add("containerLogMaxWorkers must be at least 1, and containerLogMonitorInterval at least 3s")
	}
	if c.Images.HighThresholdPercent < 0 || c.Images.HighThresholdPercent > 100 || c.Images.LowThresholdPercent < 0 ||
		c.Images.LowThresholdPercent > 100 {
		add("--image-gc-high-threshold=%d, --image-gc-low-threshold=%d: percentages are needed",
			c.Images.HighThresholdPercent, c.Images.LowThresholdPercent)
	} else if c.Images.LowThresholdPercent >= c.Images.HighThresholdPercent {
		add("--image-gc-low-threshold=%d must be below --image-gc-high-threshold=%d", c.Images.LowThresholdPercent, c.Images.HighThresholdPercent)
	}
	if c.Images.MinimumAge < 0 || c.Images.MaximumAge < 0 || c.Images.MaximumAge > 0 && c.Images.MaximumAge <= c.Images.MinimumAge {
		add("imageMaximumGCAge=%s must be zero or more than imageMinimumGCAge=%s", c.Images.MaximumAge, c.Images.MinimumAge)
	}
}
