package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Monitors give up after ten seconds: the runtime may take statsWithin to say what containers use and,
// where it did not, restWithin for everything else that it is asked.
const (
	statsWithin = 5 * time.Second
	restWithin  = 2 * time.Second
)

// measure is what the runtime measures of pods' containers or, while it does not answer, what their
// control groups have. Where neither is to be had, the request is answered.
func (s *Server) measure(c *gin.Context) ([]*runtimeapi.ContainerStats, bool) {
	asking, cancel := context.WithTimeout(c.Request.Context(), statsWithin)
	defer cancel()
	all, err := s.Runtime.ListContainerStats(asking, nil)
	if err == nil {
		if s.silent.Swap(false) {
			s.Logger.Info("the runtime reports container usage again")
			s.groupRates.keep(nil) // the next silence is another one: no rate is that of the time between
		}
		all = newest(slices.DeleteFunc(all, func(one *runtimeapi.ContainerStats) bool { return !runtimestate.OfKubelet(one.GetAttributes()) }))
		s.keepLayers(all)
		return all, true
	}
	if c.Request.Context().Err() != nil { // nobody waits for it any more
		s.refuse(c, http.StatusInternalServerError, err)
		return nil, false
	}
	if all, known := s.measuredByGroups(); known {
		if !s.silent.Swap(true) {
			s.Logger.Warn("the runtime does not report container usage: until it does, statistics come from cgroups", zap.Error(err))
		}
		rest, cancel := context.WithTimeout(c.Request.Context(), restWithin)
		context.AfterFunc(c.Request.Context(), cancel) // which ends with the request
		c.Request = c.Request.WithContext(rest)
		return all, true
	}
	s.refuse(c, http.StatusInternalServerError, err)
	return nil, false
}

// measuredByGroups is what the groups of running containers report, in the runtime's form; false where
// pods have no groups.
func (s *Server) measuredByGroups() (all []*runtimeapi.ContainerStats, known bool) {
	if s.Stats.Groups == nil {
		return nil, false
	}
	if _, known := s.Stats.Groups("", ""); !known {
		return nil, false
	}
	layers := s.lastLayers()
	for _, pod := range s.Pods.Pods() {
		status, _ := s.Status(pod.UID)
		for c := range core.AllContainerStatuses(&status) {
			if c.State.Running == nil {
				continue
			}
			if one := s.statsOfGroup(pod, c); one != nil {
				one.WritableLayer = layers[one.Attributes.Id]
				all = append(all, one)
			}
		}
	}
	s.groupRates.keep(all)
	return all, true
}

// keepLayers remembers the sizes of containers' writable layers, which no group has. Each says
// when it was measured.
func (s *Server) keepLayers(all []*runtimeapi.ContainerStats) {
	layers := map[string]*runtimeapi.FilesystemUsage{}
	for _, one := range all {
		if layer := one.GetWritableLayer(); layer != nil {
			layers[one.GetAttributes().GetId()] = layer
		}
	}
	s.layers.Store(&layers)
}

// lastLayers are those that the runtime told of when it last did.
func (s *Server) lastLayers() map[string]*runtimeapi.FilesystemUsage {
	if known := s.layers.Load(); known != nil {
		return *known
	}
	return nil
}

// statsOfGroup is nil for a container that has ended meanwhile.
func (s *Server) statsOfGroup(pod *core.Pod, c *core.ContainerStatus) *runtimeapi.ContainerStats {
	_, id, _ := strings.Cut(c.ContainerID, "://")
	usage, known := s.Stats.Groups(pod.UID, id)
	if !known {
		return nil
	}
	at, of := s.Clock.Now(), func(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }
	now := at.UnixNano()
	one := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: id, Metadata: &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(c.RestartCount)},
			Labels: map[string]string{
				kubelettypes.KubernetesPodUIDLabel: string(pod.UID), kubelettypes.KubernetesPodNamespaceLabel: pod.Namespace,
				kubelettypes.KubernetesPodNameLabel: pod.Name, kubelettypes.KubernetesContainerNameLabel: c.Name,
			},
		},
		Cpu: &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: of(usage.CPU)},
		Memory: &runtimeapi.MemoryUsage{
			Timestamp: now, UsageBytes: of(usage.Memory), WorkingSetBytes: of(usage.WorkingSet), RssBytes: of(usage.RSS),
			PageFaults: of(usage.PageFaults), MajorPageFaults: of(usage.MajorPageFaults),
		},
		Swap: swapOf(usage, at),
	}
	if rate := s.groupRates.since(id, at, usage.CPU); rate != nil {
		one.Cpu.UsageNanoCores = of(*rate)
	}
	if usage.Limit > 0 {
		one.Memory.AvailableBytes = of(usage.Limit - min(usage.Limit, usage.WorkingSet))
	}
	return one
}

// swapOf is what runtimes need not report: containers may not use more swap than they do.
func swapOf(usage cgroup.Usage, at time.Time) *runtimeapi.SwapUsage {
	return &runtimeapi.SwapUsage{
		Timestamp:          at.UnixNano(),
		SwapUsageBytes:     &runtimeapi.UInt64Value{Value: usage.Swap},
		SwapAvailableBytes: &runtimeapi.UInt64Value{},
	}
}
