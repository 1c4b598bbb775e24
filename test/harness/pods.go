package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Pod returns a pod with one container, c, to be changed as a test needs it.
func Pod(name, image string, args ...string) *corev1.Pod {
	grace := int64(2)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "c", Image: image, Args: args, ImagePullPolicy: corev1.PullIfNotPresent}},
		},
	}
}

func (c *Cluster) Create(pod *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	created, err := c.Client().CoreV1().Pods(pod.Namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

// Await watches a pod until ok returns true, and returns the pod. It gives up
// after a while, which only bounds a failing test.
func (c *Cluster) Await(namespace, name string, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 90*time.Second)
	defer cancel()
	var last *corev1.Pod
	for ctx.Err() == nil {
		if pod := watchPod(ctx, c.Client(), namespace, name, &last, ok); pod != nil {
			return pod
		}
	}
	if last == nil {
		c.t.Fatalf("pod %s never was there, want it %s", name, what)
	}
	c.t.Fatalf("pod %s is not %s but %s %s %+v", name, what, last.Status.Phase, last.Status.Reason, last.Status.ContainerStatuses)
	return nil
}

// watchPod returns nil if the watch ends first.
func watchPod(ctx context.Context, client kubernetes.Interface, namespace, name string, last **corev1.Pod,
	ok func(*corev1.Pod) bool) *corev1.Pod {
	w, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		// The server may be away: some tests stop it.
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			return nil
		}
		*last = pod
		if ok(pod) {
			return pod
		}
	}
	return nil
}

// Running says whether every container of the pod runs.
func Running(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning || len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
		return false
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running == nil {
			return false
		}
	}
	return true
}

// AwaitRunning waits until every container of the pod runs.
func (c *Cluster) AwaitRunning(name string) *corev1.Pod {
	c.t.Helper()
	return c.Await("default", name, "Running", Running)
}

// AwaitGone waits until there is no pod of that name.
func (c *Cluster) AwaitGone(name string) {
	c.t.Helper()
	Eventually(c.t, 60*time.Second, func() error {
		pod, err := c.Client().CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("pod %s is still there: %v", name, pod.DeletionTimestamp), err)
	})
}

// Exited is how the pod's first container ended, or nil.
func Exited(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	return pod.Status.ContainerStatuses[0].State.Terminated
}

// NothingLost checks that every config map whose create was acknowledged is
// there.
func NothingLost(t testing.TB, client kubernetes.Interface, acknowledged []string) {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, c := range list.Items {
		there[c.Name] = true
	}
	for _, name := range acknowledged {
		if !there[name] {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
}

// RunningContainers asks the containerd of a cluster or a host, by its
// directory, how many containers of each pod run.
func RunningContainers(t testing.TB, dir string) map[string]int {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+dir+"/run/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	list, err := runtimeapi.NewRuntimeServiceClient(conn).ListContainers(t.Context(), &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}})
	if err != nil {
		t.Fatal(err)
	}
	running := map[string]int{}
	for _, c := range list.Containers {
		running[c.Labels["io.kubernetes.pod.name"]]++
	}
	return running
}
