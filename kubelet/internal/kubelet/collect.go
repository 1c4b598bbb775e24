package kubelet

import (
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/garbagecollector"
	"kctl/kubelet/internal/logrotate"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/source"
)

// newCollector creates what removes what pods leave behind.
func (g *given) newCollector(m *machinery, active *activepods.Pods, ready *source.Ready, events *podEvents) *garbagecollector.Collector {
	return garbagecollector.New(garbagecollector.Options{
		State: m.state, Runtime: m.runtime, Cgroups: m.cgroups,
		Directories: directories{m.volumes, m.userIDs}, PodLogsDir: g.config.PodLogsDir,
		Ready: ready.All, Ended: active.Ended,
		Known:   func(uid types.UID) bool { return !active.Forgotten(uid) },
		Evicted: func(uid types.UID) bool { return active.EndedFor(uid, podkiller.Evicted, podkiller.Preempting) },
		Failed:  events.nodeWarning, Clock: g.clock, Logger: g.logger,
	})
}

// newRotator creates what keeps containers' logs small.
func (g *given) newRotator(state *runtimestate.Reader, runtime *cri.Client) *logrotate.Rotator {
	c := g.config.ContainerLogs
	return logrotate.New(logrotate.Options{
		Runtime: state, Reopener: runtime, PodLogsDir: g.config.PodLogsDir,
		MaxSize: c.MaxSize.Value(), MaxFiles: int(c.MaxFiles), Workers: int(c.Workers), Interval: c.Interval,
		Clock: g.clock, Logger: g.logger,
	})
}
