package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/config"
	"kctl/proto/core"
)

// Of more manifests than the node has room for, as many run as there is room for.
func TestMoreManifestsThanRoom(t *testing.T) {
	const manifests, room = 40, 7
	b, _ := newHollowBed(t, func(c *config.Config) {
		c.Sources.StaticPodPath, c.MaxPods = t.TempDir(), room
		for i := range manifests {
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":1,"hostPort":%d}]}]}}`, i, 1+i%20)
			if err := os.WriteFile(filepath.Join(c.Sources.StaticPodPath, fmt.Sprint(i, ".json")), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	phases := func() map[corev1.PodPhase]int {
		count := map[corev1.PodPhase]int{}
		for _, pod := range b.kubelet.pods.Pods() {
			status, _ := b.kubelet.statuses.Get(pod.UID)
			count[status.Phase]++
		}
		return count
	}
	b.eventually("as many pods to run as there is room for, and the others to fail", func() bool {
		return phases()[corev1.PodRunning] == room && phases()[corev1.PodFailed] == manifests-room
	})
}

// Pods that ended before a kubelet started leave their room to those that run, though all of them
// are new to it.
func TestEndedPodsTakeNoRoomFromARestartedKubelet(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("first", nil))
	b.waitPhase("first", corev1.PodRunning) // the kubelet has started
	var all []*core.Pod
	for i := range 50 {
		ended := hollowPod(fmt.Sprint("ended-", i), nil)
		ended.UID, ended.Status.Phase = types.UID(ended.Name), corev1.PodSucceeded
		ended.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		all = append(all, ended)
	}
	runs := hollowPod("runs", nil)
	runs.UID, runs.Status.Phase = "runs", corev1.PodRunning
	runs.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	b.kubelet.handler.HandlePodAdditions(append(all, runs))
	if status, known := b.kubelet.statuses.Get(runs.UID); known && status.Phase == corev1.PodFailed {
		t.Errorf("%s: %s", status.Reason, status.Message)
	}
	if !b.kubelet.workers.CouldHaveRunningContainers(runs.UID) {
		t.Error("it has no worker")
	}
	for _, pod := range append(all, runs) {
		b.kubelet.handler.HandlePodRemoves([]*core.Pod{pod})
	}
}
