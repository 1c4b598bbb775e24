// Package defaultbinder is the plugin DefaultBinder: it posts the Binding that
// ties a pod to its node, and sends the stamps of the pod's way through the
// scheduler along. The profile builds it; the binding half of the cycle calls
// it, many at a time.
package defaultbinder

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/rest"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "DefaultBinder"

// Plugin implements Bind.
type Plugin struct {
	client *rest.Client
	clock  clock.PassiveClock
}

// New returns a plugin that binds through client.
func New(client *rest.Client, clock clock.PassiveClock) *Plugin {
	return &Plugin{client: client, clock: clock}
}

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// Bind implements framework.Bind. The Binding carries the pod's UID: a pod that
// was deleted and made again under the same name must not be bound by it.
func (p *Plugin) Bind(ctx context.Context, state *framework.CycleState, pod *framework.PodInfo, node string) *framework.Status {
	binding := &core.Binding{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Pod.Namespace, Name: pod.Pod.Name, UID: pod.Pod.UID,
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}
	state.Relay.Stamp(relay.SchedulerBinding, p.clock.Now())
	options := []rest.Option{rest.Sub("binding")}
	if stamps := state.Relay.Unsent(); len(stamps) > 0 {
		options = append(options, rest.Header(relay.Header, relay.Encode(stamps)))
	}
	if err := p.client.Resource(core.Pods, pod.Pod.Namespace).Create(ctx, binding, nil, options...); err != nil {
		return framework.AsError(fmt.Errorf("bind pod to node %s: %w", node, err))
	}
	return nil
}
