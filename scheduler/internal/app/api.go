package app

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// apiPods is what the cycle and the reporter ask of the API about pods.
type apiPods struct{ client *rest.Client }

// Pod implements cycle.PodReader and report.API.
func (a apiPods) Pod(ctx context.Context, namespace, name string) (*core.Pod, error) {
	pod := &core.Pod{}
	return pod, a.client.Resource(core.Pods, namespace).Get(ctx, name, pod)
}

// PatchPodStatus implements report.API.
func (a apiPods) PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) error {
	return a.client.Resource(core.Pods, namespace).
		Patch(ctx, name, types.StrategicMergePatchType, patch, nil, rest.Sub("status"))
}
