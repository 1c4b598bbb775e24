package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
)

var nodes = []behaviour{
	{"Node Lifecycle should run through the lifecycle of a node", nodeLifecycle},
	{"NoExecuteTaintManager Multiple Pods [Serial] evicts pods with minTolerationSeconds [Disruptive]", evictsByToleration},
	{"NoExecuteTaintManager Single Pod [Serial] removing taint cancels eviction [Disruptive]", untaintedInTime},
}

func nodeLifecycle(w *world) {
	api := w.client.CoreV1().Nodes()
	changes, err := api.Watch(w.ctx, metav1.ListOptions{LabelSelector: "test=lifecycle"})
	w.must(err)
	defer changes.Stop()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "fake", Labels: map[string]string{"test": "lifecycle"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			Phase:      corev1.NodeRunning,
			Capacity:   list("1", "1Gi"),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "set by a test"}},
		},
	}
	_, err = api.Create(w.ctx, node, metav1.CreateOptions{})
	w.must(err)
	w.sees(changes, watch.Added)
	_, err = api.Patch(w.ctx, "fake", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"step":"patched"}}}`), metav1.PatchOptions{})
	w.must(err)
	w.sees(changes, watch.Modified)
	_, err = api.Patch(w.ctx, "fake", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True","message":"patched by a test"}]}}`), metav1.PatchOptions{}, "status")
	w.must(err)
	w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := api.Get(w.ctx, "fake", metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Labels["step"] = "updated"
		_, err = api.Update(w.ctx, current, metav1.UpdateOptions{})
		return err
	}))
	got, err := api.Get(w.ctx, "fake", metav1.GetOptions{})
	w.must(err)
	ready := slices.IndexFunc(got.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if got.Labels["step"] != "updated" || ready < 0 || got.Status.Conditions[ready].Message != "patched by a test" {
		w.t.Errorf("the node is %+v %+v", got.Labels, got.Status.Conditions)
	}
	w.must(api.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "test=lifecycle"}))
	w.sees(changes, watch.Deleted)
	if _, err := api.Get(w.ctx, "fake", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("deleted, it is %v", err)
	}
}

var evict = corev1.Taint{Key: "example.com/evict", Value: "yes", Effect: corev1.TaintEffectNoExecute}

// tolerating is a pod that tolerates the taint for so many seconds.
func (w *world) tolerating(name string, seconds int64) *corev1.Pod {
	pod := w.lasting(name)
	pod.Spec.Tolerations = []corev1.Toleration{{Key: evict.Key, Value: evict.Value, Effect: evict.Effect, TolerationSeconds: &seconds}}
	return pod
}

// taint taints the cluster's node until the test ends, or until the returned
// function is called.
func (w *world) taint() (remove func()) {
	w.t.Helper()
	change := func(change func(*corev1.Node)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			node, err := w.client.CoreV1().Nodes().Get(w.t.Context(), w.Node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(node)
			_, err = w.client.CoreV1().Nodes().Update(w.t.Context(), node, metav1.UpdateOptions{})
			return err
		})
	}
	w.must(change(func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, evict) }))
	return func() {
		w.must(change(func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == evict.Key })
		}))
	}
}

func evictsByToleration(w *world) {
	w.start(w.tolerating("short", 2))
	w.start(w.tolerating("long", 8))
	w.start(w.lasting("intolerant"))
	remove := w.taint()
	defer remove()
	w.gone("intolerant")
	w.gone("short")
	long, err := w.pods().Get(w.ctx, "long", metav1.GetOptions{})
	if err != nil || long.DeletionTimestamp != nil {
		w.t.Errorf("the pod with the longer toleration went with the other: %v", err)
	}
	w.gone("long")
}

func untaintedInTime(w *world) {
	const tolerated = 4
	w.start(w.tolerating("saved", tolerated))
	w.taint()()
	w.unchanged("saved", (tolerated+2)*time.Second, func(p *corev1.Pod) error {
		if p.DeletionTimestamp != nil {
			return errors.New("it is evicted")
		}
		return nil
	})
	if _, err := w.pods().Get(w.ctx, "saved", metav1.GetOptions{}); err != nil {
		w.t.Error(fmt.Errorf("it is gone: %w", err))
	}
}
