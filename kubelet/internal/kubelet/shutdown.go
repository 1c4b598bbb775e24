package kubelet

import (
	"github.com/godbus/dbus/v5"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/shutdown"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// makeShutdown makes what ends pods in order when the machine is shut down, if
// configured.
func (k *Kubelet) makeShutdown() error {
	periods, err := k.config.Shutdown.Periods()
	if err != nil || len(periods) == 0 {
		return err
	}
	k.shutdown = shutdown.New(shutdown.Options{
		Periods: periods, Connect: func() (*dbus.Conn, error) { return dbus.ConnectSystemBus() }, ConfigDir: shutdown.ConfigDir,
		Pods: func() []*core.Pod { return k.active.MayRun() }, End: k.endForShutdown, Told: k.shutdownDone, Changed: k.shutdownChanged, Clock: k.clock, Logger: k.logger,
	})
	return nil
}

func (k *Kubelet) shutdownChanged() {
	what := "cancellation"
	if k.shutdown.ShuttingDown() {
		what = "event"
		k.metrics.ShutdownStart.Set(float64(k.clock.Now().Unix()))
	}
	k.events.Eventf(k.node.Node(), corev1.EventTypeNormal, "Shutdown", "Shutdown manager detected shutdown %s", what)
	k.node.UpdateStatusSoon()
}

// shutdownDone is called when all pods have ended. The channel is closed when
// the API server has their status.
func (k *Kubelet) shutdownDone() <-chan struct{} {
	k.metrics.ShutdownEnd.Set(float64(k.clock.Now().Unix()))
	return k.statuses.Rested()
}

func (k *Kubelet) endForShutdown(pod *core.Pod, grace int64, done chan<- struct{}) {
	k.logger.Info("pod ends for the machine's shutdown", daemon.PodFields(pod), zap.Int64("grace", grace))
	k.killer.Terminate(pod, podkiller.Termination{
		Reason: shutdown.Reason, Message: shutdown.Message, Disrupted: shutdown.Message, KeepsSuccess: true, Grace: &grace, Done: done,
	})
}
