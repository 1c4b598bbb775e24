package feed

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/proto/watch"
)

// slimPods passes pods on to next without what the scheduler never looks at:
// with thousands of pods that is most of their bytes. Whole ones are for those
// who look at what the scheduler does not.
type slimPods struct {
	next  watch.Sink[*core.Pod]
	whole bool
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
		slimPod(pod)
	}
}

func slimPod(pod *core.Pod) {
	pod.Annotations = nil
	slimContainers(pod.Spec.Containers)
	slimContainers(pod.Spec.InitContainers)
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
	if pod.Spec.NodeName != "" {
		pod.Spec.Volumes = nil
	}
}

func slimContainers(containers []core.Container) {
	for i, c := range containers {
		containers[i] = core.Container{
			Name: c.Name, Image: c.Image, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy,
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
	next  watch.Sink[*core.Node]
	whole bool
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
		slimNode(node)
	}
}

func slimNode(node *core.Node) {
	node.Annotations = nil
	node.Status = corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable}
}
