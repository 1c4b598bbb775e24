package relay_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// preemption: an important pod takes the place of a less important one, which
// is told why it has to go.
func preemption(t *testing.T, c *harness.Cluster, _ string) {
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatal(nodes, err)
	}
	most := nodes.Items[0].Status.Allocatable.Cpu().MilliValue()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important"}, Value: 1000}
	classes := c.Client().SchedulingV1().PriorityClasses()
	if _, err := classes.Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = classes.Delete(t.Context(), class.Name, metav1.DeleteOptions{}) })
	greedy := func(name, class string) *corev1.Pod {
		pod := harness.Pod(name, harness.Demo, "sleep", "infinity")
		pod.Spec.PriorityClassName = class
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(most*2/3, resource.DecimalSI)}
		return pod
	}
	c.Create(greedy("low", ""))
	low := c.AwaitRunning("low")
	pods := c.Client().CoreV1().Pods(low.Namespace)
	watch, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: low.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	c.Create(greedy("high", class.Name))
	// The victim's end is seen before the other pod's binding, which removes
	// nominatedNodeName from that pod's status.
	told, nominated := false, ""
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatal(event.Object)
		}
		if pod.Name == "high" && pod.Status.NominatedNodeName != "" {
			nominated = pod.Status.NominatedNodeName
		}
		for _, condition := range pod.Status.Conditions {
			told = told || condition.Type == corev1.DisruptionTarget && condition.Reason == corev1.PodReasonPreemptionByScheduler
		}
		if pod.Name == "high" && pod.Spec.NodeName != "" {
			break
		}
	}
	if !told || nominated != nodes.Items[0].Name {
		t.Errorf("the victim has DisruptionTarget: %v; the other pod was nominated to %q", told, nominated)
	}
	c.AwaitRunning("high")
	c.AwaitGone("low")
	events, err := c.Client().CoreV1().Events(low.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=low,reason=Preempted"})
	if err != nil || len(events.Items) != 1 {
		t.Errorf("events: %v, %v", events, err)
	}
}
