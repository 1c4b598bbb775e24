package faults_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/test/harness"
)

// TestAHundredThousandPodsThatFitNowhere: once each pod was tried and marked
// unschedulable, the scheduler makes no more decisions and sends no more
// requests, whatever happens that can't help the pods, until something happens
// that can.
func TestAHundredThousandPodsThatFitNowhere(t *testing.T) {
	harness.NeedLong(t, "takes minutes to create 100,000 pods")
	const many, clients = 100_000, 16
	c := harness.Start(t, harness.Options{Without: []string{"registry", "containerd", "kubelet", "scheduler"}})
	paperNodes(t, c, "small", 10)
	p := startScheduler(t, c, c.Kubeconfig("scheduler"), "--pod-max-in-unschedulable-pods-duration=2h")
	var creating sync.WaitGroup
	for part := range clients {
		client := c.Client()
		creating.Go(func() {
			for i := part; i < many; i += clients {
				if _, err := client.CoreV1().Pods("default").Create(t.Context(), paperPod(fmt.Sprintf("big-%d", i), "small", "99"), metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	creating.Wait()
	value := func(name string, labels ...string) float64 {
		t.Helper()
		v, err := p.metric(name, labels...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	work := func() (w [3]float64) {
		return [3]float64{value("scheduler_schedule_attempts_total"), value("scheduler_queue_incoming_pods_total"),
			value("rest_client_requests_total", `method="P`)} // POST, PUT, PATCH
	}
	harness.Eventually(t, 10*time.Minute, func() error {
		if waiting := value("scheduler_pending_pods", `queue="unschedulable"`); waiting != many {
			return fmt.Errorf("%v pods wait to be told of a change", waiting)
		}
		return nil
	})
	for least := 1000.0; least <= many; least += 1000 { // slow is not stuck, on a machine that has other things to do
		harness.Eventually(t, 5*time.Minute, func() error {
			if told := value("rest_client_requests_total", `method="PATCH"`, `code="200"`); told < least {
				return fmt.Errorf("%v pods were marked unschedulable", told)
			}
			return nil
		})
	}
	var last [3]float64
	harness.Eventually(t, 5*time.Minute, func() error { // until all is done
		before := last
		time.Sleep(3 * time.Second) // between two looks
		if last = work(); last != before {
			return fmt.Errorf("attempts, moves and writes go on: %v after %v", last, before)
		}
		return nil
	})
	cpu := value("process_cpu_seconds_total")
	// This can't help them: a hundred changes of a node's label and condition.
	nodes := c.Client().CoreV1().Nodes()
	for i := range 100 {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, i)
		if _, err := nodes.Patch(t.Context(), fmt.Sprintf("small-%d", i%10), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// When this pod is placed, the queue has handled everything before it.
	c.Create(paperPod("fits", "small", "100m"))
	c.Await("default", "fits", "on a node", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	now := work()
	if now[0]-last[0] > 1 || now[1]-last[1] > 1 || now[2]-last[2] > 3 { // the pod, its binding, its event
		t.Errorf("attempts, moves and writes were %v, and are %v", last, now)
	}
	t.Logf("%.2f s of CPU for 100 changes of nodes; %.0f MiB resident", value("process_cpu_seconds_total")-cpu, value("process_resident_memory_bytes")/(1<<20))
	// This helps them.
	if _, err := nodes.Patch(t.Context(), "small-0", types.MergePatchType, []byte(`{"status":{"allocatable":{"cpu":"150"},"capacity":{"cpu":"150"}}}`),
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 10*time.Minute, func() error {
		list, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=small-0"})
		for i := range list.Items {
			if list.Items[i].Name != "fits" {
				return nil
			}
		}
		return fmt.Errorf("none of them found the node that has room: %v", err)
	})
}
