package relay_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// A hundred hollow nodes are nodes like any other: they register and heartbeat,
// and pods are bound to them, run and go.
func TestHollowNodes(t *testing.T) {
	t.Parallel()
	const nodes, pods = 100, 200
	c := harness.Start(t, harness.Options{Without: []string{"kubelet", "containerd", "registry"}})
	c.HollowNodes(t, nodes)
	leases := c.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease)
	first := map[string]time.Time{}
	renewed := func() (int, error) {
		list, err := leases.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		count := 0
		for _, lease := range list.Items {
			if before, seen := first[lease.Name]; seen && lease.Spec.RenewTime.After(before) {
				count++
			} else if !seen {
				first[lease.Name] = lease.Spec.RenewTime.Time
			}
		}
		return count, nil
	}
	if _, err := renewed(); err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		c.Create(harness.Pod(fmt.Sprintf("hollow-%d", i), "image.example/any"))
	}
	inPhase := func(phase corev1.PodPhase) (list *corev1.PodList, used map[string]bool, err error) {
		list, err = c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(phase)})
		used = map[string]bool{}
		for i := range list.Items {
			used[list.Items[i].Spec.NodeName] = true
		}
		return list, used, err
	}
	harness.Eventually(t, 3*time.Minute, func() error {
		list, used, err := inPhase(corev1.PodRunning)
		if err == nil && len(list.Items) < pods {
			err = fmt.Errorf("%d of %d pods run, on %d nodes", len(list.Items), pods, len(used))
		}
		return err
	})
	if _, used, err := inPhase(corev1.PodRunning); err != nil || len(used) < nodes/2 {
		t.Errorf("the pods are on %d nodes, %v", len(used), err)
	}
	if err := c.Client().CoreV1().Pods("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 3*time.Minute, func() error {
		list, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(list.Items))
		}
		return err
	})
	harness.Eventually(t, 3*time.Minute, func() error {
		count, err := renewed()
		if err == nil && count < nodes {
			err = fmt.Errorf("%d leases were renewed", count)
		}
		return err
	})
}
