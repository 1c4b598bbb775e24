package runtimestate

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/dump"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/proto/core"
)

// Annotations that the kubelet puts on what it makes in the runtime, beside the
// labels of k8s.io/kubelet/pkg/types. They are upstream's, so that crictl,
// monitoring agents and an upstream kubelet that takes over the node understand
// them; and they are all that the kubelet remembers about a container.
const (
	annotationHash                   = "io.kubernetes.container.hash"
	annotationRestartCount           = "io.kubernetes.container.restartCount"
	annotationTerminationMessagePath = "io.kubernetes.container.terminationMessagePath"
	annotationTerminationPolicy      = "io.kubernetes.container.terminationMessagePolicy"
	annotationPreStop                = "io.kubernetes.container.preStopHandler"
	annotationPorts                  = "io.kubernetes.container.ports"
	annotationDeletionGracePeriod    = "io.kubernetes.pod.deletionGracePeriod"
	annotationTerminationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
)

// podIdentity are the labels that identify a pod's sandboxes and containers.
func podIdentity(pod *core.Pod) map[string]string {
	return map[string]string{
		kubelettypes.KubernetesPodNameLabel:      pod.Name,
		kubelettypes.KubernetesPodNamespaceLabel: pod.Namespace,
		kubelettypes.KubernetesPodUIDLabel:       string(pod.UID),
	}
}

// sandboxOfKubelet and containerOfKubelet tell whether something with these labels can be a
// kubelet's. Directories and logs are named by them, and removed: what has others, which lead
// elsewhere, is somebody else's. A sandbox has the pod's own labels too, and nothing is named
// by those.
func sandboxOfKubelet(labels map[string]string) bool {
	return labels[kubelettypes.KubernetesPodUIDLabel] != "" && areFileNames(labels,
		kubelettypes.KubernetesPodUIDLabel, kubelettypes.KubernetesPodNameLabel, kubelettypes.KubernetesPodNamespaceLabel)
}

func containerOfKubelet(labels map[string]string) bool {
	return sandboxOfKubelet(labels) && areFileNames(labels, kubelettypes.KubernetesContainerNameLabel)
}

// OfKubelet tells whether a measured container can be a kubelet's.
func OfKubelet(of *runtimeapi.ContainerAttributes) bool {
	return containerOfKubelet(of.GetLabels()) && len(of.GetId()) <= unix.NAME_MAX
}

func areFileNames(labels map[string]string, keys ...string) bool {
	for _, key := range keys {
		if value := labels[key]; len(value) > unix.NAME_MAX || len(path.IsValidPathSegmentName(value)) > 0 {
			return false
		}
	}
	return true
}

// SandboxLabels are those of a pod's sandboxes, the pod's own among them.
func SandboxLabels(pod *core.Pod) map[string]string {
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, podIdentity(pod))
	return labels
}

// ContainerLabels are those of a pod's container.
func ContainerLabels(pod *core.Pod, container *core.Container) map[string]string {
	labels := podIdentity(pod)
	labels[kubelettypes.KubernetesContainerNameLabel] = container.Name
	return labels
}

// ContainerAnnotations are what is to be remembered of a container that is made.
func ContainerAnnotations(pod *core.Pod, container *core.Container, restartCount int32) map[string]string {
	annotations := map[string]string{
		annotationHash:                   strconv.FormatUint(HashContainer(container), 16),
		annotationRestartCount:           strconv.Itoa(int(restartCount)),
		annotationTerminationMessagePath: container.TerminationMessagePath,
		annotationTerminationPolicy:      string(container.TerminationMessagePolicy),
	}
	if pod.DeletionGracePeriodSeconds != nil {
		annotations[annotationDeletionGracePeriod] = strconv.FormatInt(*pod.DeletionGracePeriodSeconds, 10)
	}
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		annotations[annotationTerminationGracePeriod] = strconv.FormatInt(*pod.Spec.TerminationGracePeriodSeconds, 10)
	}
	if container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
		annotations[annotationPreStop] = mustJSON(container.Lifecycle.PreStop)
	}
	if len(container.Ports) > 0 {
		annotations[annotationPorts] = mustJSON(container.Ports)
	}
	return annotations
}

// RestoreSpecs is a pod and a container with just as much of their specs as the
// annotations of a container tell: what it takes to end a container whose pod
// is gone from every source.
func RestoreSpecs(labels, annotations map[string]string) (*core.Pod, *core.Container) {
	pod := &core.Pod{}
	pod.Name = labels[kubelettypes.KubernetesPodNameLabel]
	pod.Namespace = labels[kubelettypes.KubernetesPodNamespaceLabel]
	pod.UID = types.UID(labels[kubelettypes.KubernetesPodUIDLabel])
	pod.DeletionGracePeriodSeconds = parseSeconds(annotations[annotationDeletionGracePeriod])
	pod.Spec.TerminationGracePeriodSeconds = parseSeconds(annotations[annotationTerminationGracePeriod])
	container := &core.Container{
		Name:                     labels[kubelettypes.KubernetesContainerNameLabel],
		TerminationMessagePath:   annotations[annotationTerminationMessagePath],
		TerminationMessagePolicy: corev1.TerminationMessagePolicy(annotations[annotationTerminationPolicy]),
	}
	if text := annotations[annotationPreStop]; text != "" {
		var hook corev1.LifecycleHandler
		if json.Unmarshal([]byte(text), &hook) == nil {
			container.Lifecycle = &corev1.Lifecycle{PreStop: &hook}
		}
	}
	_ = json.Unmarshal([]byte(annotations[annotationPorts]), &container.Ports) // named ports of hooks; none if unreadable
	pod.Spec.Containers = []core.Container{*container}
	return pod, container
}

// HashContainer tells apart container specs that need a new container. As
// upstream, and with its result, it looks at the name and the image only: the
// API lets nothing else change without a restart.
func HashContainer(container *core.Container) uint64 {
	hash := fnv.New32a()
	picked := mustJSON(map[string]string{"name": container.Name, "image": container.Image})
	_, _ = hash.Write([]byte(dump.ForHash([]byte(picked)))) // a hash never fails
	return uint64(hash.Sum32())
}

func parseHash(s string) uint64 {
	hash, _ := strconv.ParseUint(s, 16, 64) // zero, which no container has, for one that is not ours
	return hash
}

func parseSeconds(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func parseRestartCount(s string, attempt uint32) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return int32(attempt)
	}
	return int32(n)
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err)) // API types and strings always encode
	}
	return string(b)
}
