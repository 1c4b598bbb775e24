package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/proto/core"
)

// pods answers with the pods that the node should have, and their statuses.
func (s *Server) pods(c *gin.Context) {
	list := newPodList()
	for _, pod := range s.Pods.Pods() {
		item := *pod
		item.APIVersion, item.Kind = "v1", "Pod"
		item.Status = s.status(pod)
		list.Items = append(list.Items, item)
	}
	s.answer(c, list)
}

// runningPods answers with the pods that the runtime runs, as far as it knows
// them.
func (s *Server) runningPods(c *gin.Context) {
	containers, err := s.Runtime.ListContainers(c.Request.Context(), &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	})
	if err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
		return
	}
	list := newPodList()
	index := map[string]int{}
	for _, container := range containers {
		labels := container.GetLabels()
		uid := labels[kubelettypes.KubernetesPodUIDLabel]
		i, known := index[uid]
		if !known {
			i = len(list.Items)
			index[uid] = i
			list.Items = append(list.Items, core.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: labels[kubelettypes.KubernetesPodNameLabel], Namespace: labels[kubelettypes.KubernetesPodNamespaceLabel], UID: types.UID(uid),
			}})
		}
		list.Items[i].Spec.Containers = append(list.Items[i].Spec.Containers, core.Container{
			Name: labels[kubelettypes.KubernetesContainerNameLabel], Image: container.GetImage().GetImage(),
		})
	}
	s.answer(c, list)
}

func newPodList() *corev1.PodList {
	list := &corev1.PodList{Items: []core.Pod{}}
	list.APIVersion, list.Kind = "v1", "PodList"
	return list
}

func (s *Server) answer(c *gin.Context, value any) {
	c.Header("Content-Type", "application/json")
	if err := json.NewEncoder(c.Writer).Encode(value); err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
	}
}

// configz answers with the configuration in use.
func (s *Server) configz(c *gin.Context) {
	if s.Configz == nil {
		s.refuse(c, http.StatusNotFound, errors.New("the configuration endpoint is disabled"))
		return
	}
	s.answer(c, map[string]any{"kubeletconfig": s.Configz()})
}

// status is the pod's newest: the kubelet's own, or before there is one the
// API's.
func (s *Server) status(pod *core.Pod) core.PodStatus {
	if status, ok := s.Status(pod.UID); ok {
		return status
	}
	return pod.Status
}

// podOf finds the pod that the path names; if there is none, it answers the request.
func (s *Server) podOf(c *gin.Context, uid string) *core.Pod {
	namespace, name := c.Param("namespace"), c.Param("pod")
	pod, ok := s.Pods.ByName(namespace, name)
	if !ok || uid != "" && string(pod.UID) != uid {
		s.refuse(c, http.StatusNotFound, fmt.Errorf("pod %q does not exist", name))
		return nil
	}
	return pod
}

// containerOf finds the pod and the container that the path names, with or
// without the pod's UID in between.
func (s *Server) containerOf(c *gin.Context) (pod *core.Pod, container string) {
	uid, container := "", c.Param("container")
	if last := c.Param("last"); last != "" {
		uid, container = container, last
	}
	pod = s.podOf(c, uid)
	if pod == nil {
		return nil, ""
	}
	if !hasContainer(&pod.Spec, container) {
		s.refuse(c, http.StatusNotFound, fmt.Errorf("container %q not found in pod %q", container, pod.Name))
		return nil, ""
	}
	return pod, container
}

func hasContainer(spec *core.PodSpec, name string) bool {
	named := func(c core.Container) bool { return c.Name == name }
	return slices.ContainsFunc(spec.Containers, named) || slices.ContainsFunc(spec.InitContainers, named) ||
		slices.ContainsFunc(spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name })
}

// isTrue reads a flag of a query: the API server writes 1 or true.
func isTrue(value string) bool { return value == "1" || strings.EqualFold(value, "true") }
