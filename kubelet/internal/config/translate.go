package config

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/shutdown"
)

func (c *Config) gates(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.FeatureGates, func() error {
		c.FeatureGates = map[string]string{}
		for name, on := range f.FeatureGates {
			c.FeatureGates[name] = strconv.FormatBool(on)
		}
		return nil
	}, func() {
		for name, value := range c.FeatureGates {
			if f.FeatureGates == nil {
				f.FeatureGates = map[string]bool{}
			}
			f.FeatureGates[name], _ = strconv.ParseBool(value) // Validate has seen to that
		}
	}}
}

// manifestHeader is shown without its values: they may be credentials.
func (c *Config) manifestHeader(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{field: &f.StaticPodURLHeader, write: func() {
		for name := range c.Sources.StaticPodURLHeader {
			if f.StaticPodURLHeader == nil {
				f.StaticPodURLHeader = map[string][]string{}
			}
			f.StaticPodURLHeader[name] = []string{"<masked>"}
		}
	}}
}

func (c *Config) leaseSeconds(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.NodeLeaseDurationSeconds,
		func() error {
			c.NodeStatus.LeaseDuration = time.Duration(f.NodeLeaseDurationSeconds) * time.Second
			return nil
		},
		func() { f.NodeLeaseDurationSeconds = int32(c.NodeStatus.LeaseDuration.Seconds()) }}
}

func (c *Config) changeDetection(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{field: &f.ConfigMapAndSecretChangeDetectionStrategy, read: func() error {
		c.ChangeDetection = f.ConfigMapAndSecretChangeDetectionStrategy
		return objects.CheckStrategy(c.ChangeDetection)
	}}
}

func amounts(ours *corev1.ResourceList, field *map[string]string) translation {
	return translation{field, func() error {
		list := corev1.ResourceList{}
		for key, value := range *field {
			if err := setResource(list, key, value); err != nil {
				return err
			}
		}
		*ours = list
		return nil
	}, func() {
		*field = map[string]string{}
		for name, quantity := range *ours {
			(*field)[string(name)] = quantity.String()
		}
	}}
}

func (c *Config) shutdownPeriods(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.ShutdownGracePeriodByPodPriority, func() error {
		c.Shutdown.GracePeriodByPodPriority = nil
		for _, p := range f.ShutdownGracePeriodByPodPriority {
			c.Shutdown.GracePeriodByPodPriority = append(c.Shutdown.GracePeriodByPodPriority,
				shutdown.Period{Priority: p.Priority, Grace: time.Duration(p.ShutdownGracePeriodSeconds) * time.Second})
		}
		return nil
	}, func() {
		for _, p := range c.Shutdown.GracePeriodByPodPriority {
			f.ShutdownGracePeriodByPodPriority = append(f.ShutdownGracePeriodByPodPriority,
				kubeletv1beta1.ShutdownGracePeriodByPodPriority{Priority: p.Priority, ShutdownGracePeriodSeconds: int64(p.Grace.Seconds())})
		}
	}}
}

func (c *Config) userNamespaces(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.UserNamespaces, func() error {
		if ids := f.UserNamespaces.IDsPerPod; ids != nil {
			c.IDsPerPod = *ids
		}
		return nil
	}, func() { f.UserNamespaces = &kubeletv1beta1.UserNamespaces{IDsPerPod: &c.IDsPerPod} }}
}

func (c *Config) parallelPulls(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.MaxParallelImagePulls, func() error {
		c.Pulls.MaxParallel = int(*f.MaxParallelImagePulls)
		if c.Pulls.MaxParallel < 1 {
			return fmt.Errorf("it is %d, and must be positive", c.Pulls.MaxParallel)
		}
		return nil
	}, func() {
		if c.Pulls.MaxParallel > 0 {
			f.MaxParallelImagePulls = new(int32(c.Pulls.MaxParallel))
		}
	}}
}

func (c *Config) logSize(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.ContainerLogMaxSize, func() (err error) {
		c.ContainerLogs.MaxSize, err = resource.ParseQuantity(f.ContainerLogMaxSize)
		return err
	}, func() { f.ContainerLogMaxSize = c.ContainerLogs.MaxSize.String() }}
}

// hardThresholds are the file's; a signal that it leaves out has no threshold,
// unless the file keeps upstream's defaults.
func (c *Config) hardThresholds(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{field: &f.EvictionHard, read: func() error {
		c.Eviction.Hard = f.EvictionHard
		if merge := f.MergeDefaultEvictionSettings; merge != nil && *merge {
			c.Eviction.Hard = eviction.DefaultHard()
			maps.Copy(c.Eviction.Hard, f.EvictionHard)
		}
		return nil
	}}
}

// logging does not change what a flag has set.
func (c *Config) logging(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.Logging, func() error {
		if c.Log.Format == "" {
			c.Log.Format = f.Logging.Format
		}
		if c.Log.Verbosity == 0 {
			c.Log.Verbosity = int(f.Logging.Verbosity)
		}
		return nil
	}, func() {
		f.Logging.Format, f.Logging.Verbosity = c.Log.FormatUsed(), logsapi.VerbosityLevel(c.Log.Verbosity)
	}}
}

func (c *Config) tracing(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.Tracing, func() error { c.Tracing = f.Tracing; return nil }, func() { f.Tracing = c.Tracing }}
}

// oneProcessOOM can't be off with cgroup v1, where the kernel kills one process at a
// time.
func (c *Config) oneProcessOOM(f *kubeletv1beta1.KubeletConfiguration) translation {
	unified := cgroups.IsCgroup2UnifiedMode()
	return translation{&f.SingleProcessOOMKill, func() error {
		if c.Cgroups.SingleProcessOOMKill = *f.SingleProcessOOMKill; !c.Cgroups.SingleProcessOOMKill && !unified {
			return errors.New("it can't be false with cgroup v1")
		}
		return nil
	}, func() {
		if unified {
			f.SingleProcessOOMKill = new(c.Cgroups.SingleProcessOOMKill)
		}
	}}
}

// swapBehavior is NoSwap unless it is set; with cgroup v1 nothing else is possible.
func (c *Config) swapBehavior(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.MemorySwap.SwapBehavior, func() error {
		switch behavior := f.MemorySwap.SwapBehavior; {
		case behavior != "NoSwap" && behavior != limitedSwap:
			return fmt.Errorf("swapBehavior=%q: there are NoSwap and %s", behavior, limitedSwap)
		case behavior == limitedSwap && !cgroups.IsCgroup2UnifiedMode():
			return fmt.Errorf("swapBehavior=%q: it needs cgroup v2", behavior)
		default:
			c.Cgroups.LimitedSwap = behavior == limitedSwap
		}
		return nil
	}, func() {
		if c.Cgroups.LimitedSwap {
			f.MemorySwap.SwapBehavior = limitedSwap
		}
	}}
}

// memoryThrottling has no default: containers are not slowed down.
func (c *Config) memoryThrottling(f *kubeletv1beta1.KubeletConfiguration) translation {
	return translation{&f.MemoryThrottlingFactor, func() error {
		factor := *f.MemoryThrottlingFactor
		if factor == 0 {
			return errors.New("it must be greater than 0 and at most 1")
		}
		c.Cgroups.MemoryQoS.ThrottlingFactor = factor
		return nil
	}, func() {
		if factor := c.Cgroups.MemoryQoS.ThrottlingFactor; factor != 0 {
			f.MemoryThrottlingFactor = &factor
		}
	}}
}

func (c *Config) memoryReservation(f *kubeletv1beta1.KubeletConfiguration) translation {
	none, tiered := kubeletv1beta1.NoneMemoryReservationPolicy, kubeletv1beta1.TieredReservationMemoryReservationPolicy
	return translation{&f.MemoryReservationPolicy, func() error {
		if policy := f.MemoryReservationPolicy; policy != none && policy != tiered {
			return fmt.Errorf("memoryReservationPolicy=%q: there are %s and %s", policy, none, tiered)
		}
		c.Cgroups.MemoryQoS.Tiered = f.MemoryReservationPolicy == tiered
		return nil
	}, func() {
		if f.MemoryReservationPolicy = none; c.Cgroups.MemoryQoS.Tiered {
			f.MemoryReservationPolicy = tiered
		}
	}}
}

const limitedSwap = "LimitedSwap"
