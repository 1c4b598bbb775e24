package pods

import (
	"context"
	"fmt"
	"strconv"

	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

// exposePod creates the service of `run --expose`: of the pod's name, for its
// labels and its port.
func (r *runOptions) exposePod(ctx context.Context, pod *core.Pod) (core.Object, error) {
	number, err := strconv.ParseInt(r.port, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("invalid port %q: must be a number", r.port)
	}
	service, err := generate.Service(pod.Name, generate.ServiceOptions{
		Selector: pod.Labels, Ports: []generate.ServicePort{{Port: int32(number), Protocol: "TCP"}},
	})
	if err != nil {
		return nil, err
	}
	service.SetNamespace(pod.Namespace) // --overrides may have chosen it
	return r.SendGenerated(ctx, core.Services, service)
}
