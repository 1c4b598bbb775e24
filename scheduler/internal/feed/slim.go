package feed

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/proto/watch"
)

// slimPods passes pods on to next without what the scheduler never looks at:
// with thousands of pods that is most of their bytes. Whole ones are for those
// who look at what the scheduler does not.
type slimPods struct {
	next   watch.Sink[*core.Pod]
	whole  bool
	shared *shared
}

func (s slimPods) Replace(pods []*core.Pod) {
	for _, pod := range pods {
		s.slim(pod)
	}
	s.next.Replace(pods)
}

func (s slimPods) Apply(t watch.Type, pod *core.Pod) {
	s.slim(pod)
	s.next.Apply(t, pod)
}

func (s slimPods) slim(pod *core.Pod) {
	if pod.ManagedFields = nil; !s.whole {
		s.slimPod(pod)
	}
}

func (s slimPods) slimPod(pod *core.Pod) {
	pod.Annotations = nil
	pod.Labels = s.shared.ofLabels(pod.Labels)
	s.slimContainers(pod.Spec.Containers)
	s.slimContainers(pod.Spec.InitContainers)
	pod.Spec.EphemeralContainers = nil
	pod.Status = core.PodStatus{
		Phase:                 pod.Status.Phase,
		NominatedNodeName:     pod.Status.NominatedNodeName,
		StartTime:             pod.Status.StartTime,
		Conditions:            pod.Status.Conditions,
		Resources:             pod.Status.Resources,
		AllocatedResources:    pod.Status.AllocatedResources,
		ContainerStatuses:     slimStatuses(pod.Status.ContainerStatuses),
		InitContainerStatuses: slimStatuses(pod.Status.InitContainerStatuses),
	}
	if pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, anywhere); len(pod.Spec.Volumes) == 0 {
		pod.Spec.Volumes = nil
	}
}

// anywhere reports whether any node can have the volume.
func anywhere(v corev1.Volume) bool {
	return v.Projected != nil || v.EmptyDir != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.HostPath != nil
}

// slimContainers leaves what containers are counted and placed by.
func (s slimPods) slimContainers(containers []core.Container) {
	for i, c := range containers {
		containers[i] = core.Container{
			Name: c.Name, Image: c.Image, Ports: c.Ports, RestartPolicy: c.RestartPolicy,
			Resources: corev1.ResourceRequirements{Requests: s.shared.ofResources(c.Resources.Requests)},
		}
	}
}

func slimStatuses(statuses []core.ContainerStatus) []core.ContainerStatus {
	var kept []core.ContainerStatus
	for _, s := range statuses {
		if s.Resources != nil || s.AllocatedResources != nil {
			kept = append(kept, core.ContainerStatus{
				Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources,
			})
		}
	}
	return kept
}

// slimNodes does the same for nodes.
type slimNodes struct {
	next   watch.Sink[*core.Node]
	whole  bool
	shared *shared
	// images takes a node's images; who takes them has each name once.
	images func(nodeName string, images []corev1.ContainerImage)
}

func (s slimNodes) Replace(nodes []*core.Node) {
	for _, node := range nodes {
		s.images(node.Name, node.Status.Images)
		s.slim(node)
	}
	s.next.Replace(nodes)
}

func (s slimNodes) Apply(t watch.Type, node *core.Node) {
	if t != watch.Deleted {
		s.images(node.Name, node.Status.Images)
	}
	s.slim(node)
	s.next.Apply(t, node)
}

func (s slimNodes) slim(node *core.Node) {
	if node.ManagedFields = nil; !s.whole {
		node.Annotations = nil
		node.Status = corev1.NodeStatus{Allocatable: s.shared.ofResources(node.Status.Allocatable)}
	}
}
