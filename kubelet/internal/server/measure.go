package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

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
		return newest(slices.DeleteFunc(all, func(one *runtimeapi.ContainerStats) bool { return !runtimestate.OfKubelet(one.GetAttributes()) })), true
	}
	if c.Request.Context().Err() != nil { // nobody waits for it any more
		s.refuse(c, http.StatusInternalServerError, err)
		return nil, false
	}
	if all, known := s.measuredByGroups(); known {
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
	if s.Groups == nil {
		return nil, false
	}
	if _, known := s.Groups("", ""); !known {
		return nil, false
	}
	for _, pod := range s.Pods.Pods() {
		status, _ := s.Status(pod.UID)
		for _, list := range [][]core.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
			for i := range list {
				if list[i].State.Running == nil {
					continue
				}
				if one := s.statsOfGroup(pod, &list[i]); one != nil {
					all = append(all, one)
				}
			}
		}
	}
	return all, true
}

// statsOfGroup is nil for a container that has ended meanwhile.
func (s *Server) statsOfGroup(pod *core.Pod, c *core.ContainerStatus) *runtimeapi.ContainerStats {
	_, id, _ := strings.Cut(c.ContainerID, "://")
	usage, known := s.Groups(pod.UID, id)
	if !known {
		return nil
	}
	now, of := s.Clock.Now().UnixNano(), func(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }
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
		Swap: &runtimeapi.SwapUsage{Timestamp: now, SwapUsageBytes: of(usage.Swap)},
	}
	if usage.Limit > 0 {
		one.Memory.AvailableBytes = of(usage.Limit - min(usage.Limit, usage.WorkingSet))
	}
	return one
}
