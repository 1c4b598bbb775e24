package app

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// apiPods is what the cycle, the reporter and the executor of preemption ask of the
// API about pods.
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

// DeletePod implements preemption.API.
func (a apiPods) DeletePod(ctx context.Context, pod *core.Pod) error {
	return a.client.Resource(core.Pods, pod.Namespace).
		Delete(ctx, pod.Name, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}, nil)
}
