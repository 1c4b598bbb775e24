// Package faults_test kills, stops and starves a cluster's programs at bad
// moments, and checks that nothing is lost and nothing is done twice.
package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

const pods = 20

// TestKilledInTheMiddle kills each program in turn with SIGKILL while 20 pods
// are being created: all of them end up Running, each with one container that
// was started once.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	for _, program := range []string{"kubelet", "scheduler", "apiserver", "containerd"} {
		t.Run(program, func(t *testing.T) {
			c := c.In(t)
			prefix := "mid-" + program
			var wg sync.WaitGroup
			wg.Go(func() { createAll(t, c, prefix) })
			// In the middle: some pods are there, others are not.
			harness.Eventually(t, 60*time.Second, func() error {
				list, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "set=" + prefix})
				if err == nil && len(list.Items) < pods/4 {
					err = fmt.Errorf("%d pods are there", len(list.Items))
				}
				return err
			})
			c.Kill(program)
			c.Up()
			wg.Wait()
			for i := range pods {
				c.AwaitRunning(fmt.Sprintf("%s-%d", prefix, i))
			}
			onceEach(t, c, prefix)
			if err := c.Client().CoreV1().Pods("default").DeleteCollection(t.Context(), *metav1.NewDeleteOptions(1), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			for i := range pods {
				c.AwaitGone(fmt.Sprintf("%s-%d", prefix, i))
			}
		})
	}
}

// createAll creates the pods, retrying each until the server says that it
// exists.
func createAll(t *testing.T, c *harness.Cluster, prefix string) {
	client := c.Client()
	for i := range pods {
		pod := harness.Pod(fmt.Sprintf("%s-%d", prefix, i), harness.Demo, "sleep", "infinity")
		pod.Labels = map[string]string{"set": prefix}
		harness.Eventually(t, 60*time.Second, func() error {
			_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil // an earlier try stored it without an answer
			}
			return err
		})
	}
}

// onceEach asks the runtime itself how many containers each pod has.
func onceEach(t *testing.T, c *harness.Cluster, prefix string) {
	t.Helper()
	running := harness.RunningContainers(t, c.Dir)
	for i := range pods {
		if name := fmt.Sprintf("%s-%d", prefix, i); running[name] != 1 {
			t.Errorf("%s has %d running containers", name, running[name])
		}
	}
}

func TestEtcdStoppedAndStartedAgain(t *testing.T) {
	t.Parallel()
	etcd := harness.StartEtcd(t)
	c := harness.Start(t, harness.Options{Flags: []string{"--etcd-servers", etcd.URL}})
	c.Create(harness.Pod("before", harness.Demo))
	c.AwaitRunning("before")
	etcd.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	_, err := c.Client().CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lost"}}, metav1.CreateOptions{})
	cancel()
	if err == nil {
		t.Error("a write was acknowledged that was not stored")
	}
	etcd.Start()
	harness.Eventually(t, 60*time.Second, func() error {
		_, err := c.Client().CoreV1().Pods("default").Get(t.Context(), "before", metav1.GetOptions{})
		return err
	})
	harness.Eventually(t, 60*time.Second, func() error {
		_, err := c.Client().CoreV1().Pods("default").Create(t.Context(), harness.Pod("after", harness.Demo), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	// A scheduler that could not renew its lease for ten seconds exits, and its
	// supervisor starts it again.
	harness.Eventually(t, 60*time.Second, func() error {
		c.Up()
		pod, err := c.Client().CoreV1().Pods("default").Get(t.Context(), "after", metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName == "" {
			err = errors.New("it is not scheduled")
		}
		return err
	})
	c.AwaitRunning("after")
	if got := c.AwaitRunning("before"); got.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Error("the pod from before was restarted")
	}
}

func TestContainerdStoppedAndStartedAgain(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	c.Create(harness.Pod("before", harness.Demo))
	before := c.AwaitRunning("before")
	c.Signal("containerd", syscall.SIGTERM)
	nodeIs := func(want corev1.ConditionStatus) {
		t.Helper()
		harness.Eventually(t, 90*time.Second, func() error {
			node, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.Node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status != want {
					return fmt.Errorf("the node's Ready is %s: %s", condition.Status, condition.Message)
				}
			}
			return nil
		})
	}
	nodeIs(corev1.ConditionFalse)
	c.Up()
	nodeIs(corev1.ConditionTrue)
	c.Create(harness.Pod("after", harness.Demo))
	c.AwaitRunning("after")
	again := c.AwaitRunning("before")
	if again.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Error("the pod from before has another container")
	}
}

func TestDownAfterEverythingWasKilled(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	c.Create(harness.Pod("orphan", harness.Demo))
	c.AwaitRunning("orphan")
	for _, program := range []string{"kubelet", "apiserver", "scheduler", "containerd", "registry"} {
		c.Kill(program)
	}
	out := c.Kctl("down", "--dir", c.Dir)
	if strings.Contains(out, "✗") {
		t.Errorf("kctl down:\n%s", out)
	}
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", c.Dir)
	}
}
