// Package defaultbinder is the plugin DefaultBinder: it posts the Binding that
// ties a pod to its node, and sends the stamps of the pod's way through the
// scheduler along. The profile builds it; the binding half of the cycle calls
// it, many at a time.
package defaultbinder

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
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
// was deleted and created again under the same name must not be bound by it.
func (p *Plugin) Bind(ctx context.Context, state *framework.CycleState, pod *framework.PodInfo, node string) *framework.Status {
	body, err := encode(pod.Pod, node)
	if err != nil {
		return framework.AsError(err)
	}
	state.Stamps.Stamp(relay.SchedulerBinding, p.clock.Now())
	var options []rest.Option
	if stamps := state.Stamps.Unsent(); len(stamps) > 0 {
		options = append(options, rest.Header(relay.Header, relay.Encode(stamps)))
	}
	path := core.Pods.Path(pod.Pod.Namespace, pod.Pod.Name) + "/binding"
	if err := p.client.Do(ctx, http.MethodPost, path, body, nil, options...); err != nil {
		state.Stamps.Lost()
		return framework.AsError(err)
	}
	return nil
}

// encode writes the necessary parts of a core.Binding by hand: there is one for
// every pod, and it is only four strings. It does not validate names; the server
// does.
func encode(pod *core.Pod, node string) (body []byte, err error) {
	body = make([]byte, 0, 256)
	for _, part := range [...]struct{ before, value string }{
		{`{"apiVersion":"v1","kind":"Binding","metadata":{"name":`, pod.Name},
		{`,"namespace":`, pod.Namespace},
		{`,"uid":`, string(pod.UID)},
		{`},"target":{"kind":"Node","name":`, node},
	} {
		if body, err = jsontext.AppendQuote(append(body, part.before...), part.value); err != nil {
			return nil, fmt.Errorf("encode binding to node %s: %w", node, err)
		}
	}
	return append(body, "}}"...), nil
}
