package kubelet

import (
	"github.com/godbus/dbus/v5"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/shutdown"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// newShutdown makes what ends pods in order when the machine is shut down; nil if that is not
// configured.
func (g *given) newShutdown(active *activepods.Pods, killer *podkiller.Killer, statuses *status.Manager, events *podEvents,
	node *node.Manager) (*shutdown.Manager, error) {
	periods, err := g.config.Shutdown.Periods()
	if err != nil || len(periods) == 0 {
		return nil, err
	}
	var manager *shutdown.Manager
	manager = shutdown.New(shutdown.Options{
		Periods: periods, Connect: func() (*dbus.Conn, error) { return dbus.ConnectSystemBus() }, ConfigDir: shutdown.ConfigDir,
		Pods: active.MayRun, Clock: g.clock, Logger: g.logger,
		End: func(pod *core.Pod, grace int64, done chan<- struct{}) {
			g.logger.Info("pod ends for the machine's shutdown", daemon.PodFields(pod), zap.Int64("grace", grace))
			killer.Terminate(pod, podkiller.Termination{
				Reason: shutdown.Reason, Message: shutdown.Message, Disrupted: shutdown.Message, KeepsSuccess: true, Grace: &grace, Done: done,
			})
		},
		Changed: func() {
			what := "cancellation"
			if manager.ShuttingDown() {
				what = "event"
				g.metrics.ShutdownStart.Set(float64(g.clock.Now().Unix()))
			}
			events.Eventf(node.Node(), corev1.EventTypeNormal, "Shutdown", "Shutdown manager detected shutdown %s", what)
			node.UpdateStatusSoon()
		},
		StatusesSent: func() <-chan struct{} { // all pods have ended; the API server has their status once it is closed
			g.metrics.ShutdownEnd.Set(float64(g.clock.Now().Unix()))
			return statuses.Rested()
		},
	})
	return manager, nil
}
