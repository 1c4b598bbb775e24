package conformance_test

import (
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	"kctl/proto/core"
)

var pods = []behaviour{
	{"Pods Extended Pods Set QOS Class should be set on Pods with matching resource requests and limits for memory and cpu", qosClass},
	{"Pods should allow activeDeadlineSeconds to be updated", deadlineUpdated},
	{"Pods should be submitted and removed", submittedAndRemoved},
	{"Pods should be updated", updated},
	{"Pods should delete a collection of pods", collectionDeleted},
	{"Pods should get a host IP", hostIP},
	{"Pods should patch a pod status", statusPatched},
	{"Pods should run through the lifecycle of Pods and PodStatus", podLifecycle},
}

var generations = []behaviour{
	{"Pods Extended (pod generation) Pod Generation custom-set generation on new pods and graceful delete", generationOfNew},
	{"Pods Extended (pod generation) Pod Generation issue 500 podspec updates and verify generation and observedGeneration eventually converge",
		generationConverges},
	{"Pods Extended (pod generation) Pod Generation pod generation should start at 1 and increment per update", generationCounts},
}

var leases = []behaviour{
	{"Lease lease API should be available", leaseAPI},
}

func qosClass(w *world) {
	for name, tc := range map[string]struct {
		requests, limits corev1.ResourceList
		want             corev1.PodQOSClass
	}{
		"guaranteed": {list("100m", "64Mi"), list("100m", "64Mi"), corev1.PodQOSGuaranteed},
		"burstable":  {list("100m", "64Mi"), list("200m", "64Mi"), corev1.PodQOSBurstable},
		"besteffort": {nil, nil, corev1.PodQOSBestEffort},
	} {
		pod := w.lasting(name)
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: tc.requests, Limits: tc.limits}
		w.Create(pod)
		got, err := w.pods().Get(w.ctx, name, metav1.GetOptions{})
		w.must(err)
		if got.Status.QOSClass != tc.want {
			w.t.Errorf("%s is of class %s", name, got.Status.QOSClass)
		}
	}
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
}

// update changes a pod, and retries after a conflict.
func (w *world) update(name string, change func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	var updated *corev1.Pod
	w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := w.pods().Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(pod)
		updated, err = w.pods().Update(w.ctx, pod, metav1.UpdateOptions{})
		return err
	}))
	return updated
}

func deadlineUpdated(w *world) {
	w.start(w.lasting("limited"))
	w.update("limited", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(2)) })
	pod := w.await("limited", "Failed", inPhase(corev1.PodFailed))
	if pod.Status.Reason != "DeadlineExceeded" {
		w.t.Errorf("it failed for %q", pod.Status.Reason)
	}
}

func submittedAndRemoved(w *world) {
	changes, err := w.pods().Watch(w.ctx, metav1.ListOptions{LabelSelector: "test=submitted"})
	w.must(err)
	defer changes.Stop()
	pod := w.lasting("submitted")
	pod.Labels = map[string]string{"test": "submitted"}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	w.start(pod)
	w.sees(changes, watch.Added)
	w.must(w.pods().Delete(w.ctx, "submitted", *metav1.NewDeleteOptions(30)))
	gone := w.sees(changes, watch.Deleted).Object.(*corev1.Pod)
	if gone.DeletionTimestamp == nil || gone.Spec.TerminationGracePeriodSeconds == nil {
		w.t.Errorf("the pod that was deleted has the metadata %+v", gone.ObjectMeta)
	}
	for _, s := range gone.Status.ContainerStatuses {
		if s.State.Terminated == nil {
			w.t.Errorf("deleted with a container that is %+v", s.State)
		}
	}
	left, err := w.pods().List(w.ctx, metav1.ListOptions{LabelSelector: "test=submitted"})
	w.must(err)
	if len(left.Items) != 0 {
		w.t.Errorf("left: %v", left.Items)
	}
}

func updated(w *world) {
	pod := w.lasting("updated")
	pod.Labels = map[string]string{"time": "one"}
	w.start(pod)
	w.update("updated", func(p *corev1.Pod) { p.Labels["time"] = "two" })
	found, err := w.pods().List(w.ctx, metav1.ListOptions{LabelSelector: "time=two"})
	w.must(err)
	if len(found.Items) != 1 || found.Items[0].Status.ContainerStatuses[0].RestartCount != 0 {
		w.t.Errorf("found by the new label: %v", found.Items)
	}
}

func collectionDeleted(w *world) {
	for i := range 3 {
		pod := w.lasting(fmt.Sprintf("collected-%d", i))
		pod.Labels = map[string]string{"test": "collected"}
		w.Create(pod)
	}
	w.must(w.pods().DeleteCollection(w.ctx, *metav1.NewDeleteOptions(1), metav1.ListOptions{LabelSelector: "test=collected"}))
	for i := range 3 {
		w.gone(fmt.Sprintf("collected-%d", i))
	}
}

func hostIP(w *world) {
	node, err := w.client.CoreV1().Nodes().Get(w.ctx, w.Node, metav1.GetOptions{})
	w.must(err)
	pod := w.start(w.lasting("hosted"))
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && pod.Status.HostIP == address.Address && pod.Status.HostIPs[0].IP == address.Address {
			return
		}
	}
	w.t.Errorf("the pod's host IP is %s, the node has %v", pod.Status.HostIP, node.Status.Addresses)
}

func statusPatched(w *world) {
	// No node is assigned, so no kubelet writes the status in between.
	pod := w.lasting("patched")
	pod.Spec.SchedulerName = "nobody"
	w.Create(pod)
	_, err := w.pods().Patch(w.ctx, "patched", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"annotations":{"patched":"true"}},"status":{"message":"Patched by a test","reason":"Test"}}`), metav1.PatchOptions{}, "status")
	w.must(err)
	got, err := w.pods().Get(w.ctx, "patched", metav1.GetOptions{})
	w.must(err)
	if got.Status.Message != "Patched by a test" || got.Status.Reason != "Test" {
		w.t.Errorf("the status is %+v", got.Status)
	}
}

func podLifecycle(w *world) {
	changes, err := w.pods().Watch(w.ctx, metav1.ListOptions{LabelSelector: "test=lifecycle"})
	w.must(err)
	defer changes.Stop()
	pod := w.lasting("lifecycle")
	pod.Labels = map[string]string{"test": "lifecycle"}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	w.ready(pod)
	_, err = w.pods().Patch(w.ctx, "lifecycle", types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"metadata":{"labels":{"step":"patched"}},"spec":{"containers":[{"name":"c","image":%q}]}}`, w.shell+":latest"), metav1.PatchOptions{})
	w.must(err)
	w.await("lifecycle", "patched and Ready", func(p *corev1.Pod) bool {
		return p.Labels["step"] == "patched" && p.Spec.Containers[0].Image == w.shell+":latest" && p.Status.ContainerStatuses[0].RestartCount == 1 && core.PodReady(p)
	})
	w.replaceStatus()
	w.must(w.pods().DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "test=lifecycle"}))
	w.sees(changes, watch.Deleted)
}

// replaceStatus adds a condition of the test's own to the status; the kubelet
// must keep it.
func (w *world) replaceStatus() {
	w.t.Helper()
	const kind = "example.com/Tested"
	w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := w.pods().Get(w.ctx, "lifecycle", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
		_, err = w.pods().UpdateStatus(w.ctx, pod, metav1.UpdateOptions{})
		return err
	}))
	got, err := w.pods().Get(w.ctx, "lifecycle", metav1.GetOptions{})
	w.must(err)
	if conditionStatus(got, kind) != corev1.ConditionTrue {
		w.t.Errorf("the conditions are %+v", got.Status.Conditions)
	}
}

func (w *world) generation(pod *corev1.Pod, want int64) {
	w.t.Helper()
	if pod.Generation != want {
		w.t.Errorf("the generation is %d, want %d", pod.Generation, want)
	}
}

func generationOfNew(w *world) {
	pod := w.script("new", "trap 'sleep 2; exit 0' TERM; while :; do sleep 0.1; done")
	pod.Generation = 100
	pod.Spec.TerminationGracePeriodSeconds = new(int64(20))
	w.generation(w.start(pod), 1)
	w.delete("new")
	got, err := w.pods().Get(w.ctx, "new", metav1.GetOptions{})
	w.must(err)
	w.generation(got, 2)
	if got.DeletionTimestamp == nil {
		w.t.Error("it is not being deleted")
	}
	w.gone("new")
}

func generationCounts(w *world) {
	pod := w.start(w.lasting("counted"))
	w.generation(pod, 1)
	w.generation(w.update("counted", func(p *corev1.Pod) { p.Labels = map[string]string{"not": "counted"} }), 1)
	steps := []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5000)) },
		func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "foo", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
		},
		func(p *corev1.Pod) { p.Spec.Containers[0].Image = w.shell + ":latest" },
	}
	for i, step := range steps {
		w.generation(w.update("counted", step), int64(i+2))
	}
	last := int64(len(steps) + 2)
	pod, err := w.pods().Get(w.ctx, "counted", metav1.GetOptions{})
	w.must(err)
	w.addDebugger(pod, w.debugger("debugger", "sleep", "3600"))
	w.observed("counted", last)
}

// observed waits until the kubelet has observed that generation of the pod,
// which must be its newest, and no condition's may be newer.
func (w *world) observed(name string, generation int64) {
	w.t.Helper()
	pod := w.await(name, fmt.Sprintf("observed at generation %d", generation), func(p *corev1.Pod) bool { return p.Status.ObservedGeneration == generation })
	w.generation(pod, generation)
	for _, c := range pod.Status.Conditions {
		if c.ObservedGeneration > generation || c.ObservedGeneration == 0 {
			w.t.Errorf("the condition %s has the generation %d", c.Type, c.ObservedGeneration)
		}
	}
}

func generationConverges(w *world) {
	w.start(w.lasting("changing"))
	const updates = 500
	for i := range updates {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 100000 - i}})
		w.must(err)
		_, err = w.pods().Patch(w.ctx, "changing", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		w.must(err)
	}
	w.observed("changing", updates+1)
}

func leaseAPI(w *world) {
	api := w.client.CoordinationV1().Leases(w.ns)
	made, err := api.Create(w.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "lease"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("holder"), LeaseDurationSeconds: new(int32(30)), AcquireTime: &metav1.MicroTime{Time: time.Unix(100, 2000)},
		RenewTime: &metav1.MicroTime{Time: time.Unix(101, 0)}, LeaseTransitions: new(int32(0))}}, metav1.CreateOptions{})
	w.must(err)
	got, err := api.Get(w.ctx, "lease", metav1.GetOptions{})
	w.must(err)
	if *got.Spec.HolderIdentity != "holder" || !got.Spec.AcquireTime.Time.Equal(made.Spec.AcquireTime.Time) {
		w.t.Errorf("the lease is %+v", got.Spec)
	}
	got.Spec.HolderIdentity, got.Spec.LeaseTransitions = new("other"), new(int32(1))
	_, err = api.Update(w.ctx, got, metav1.UpdateOptions{})
	w.must(err)
	patched, err := api.Patch(w.ctx, "lease", types.MergePatchType, []byte(`{"metadata":{"labels":{"test":"lease"}},"spec":{"leaseDurationSeconds":60}}`),
		metav1.PatchOptions{})
	w.must(err)
	if *patched.Spec.HolderIdentity != "other" || *patched.Spec.LeaseDurationSeconds != 60 {
		w.t.Errorf("patched, it is %+v", patched.Spec)
	}
	w.must(api.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "test=lease"}))
	if _, err := api.Get(w.ctx, "lease", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("deleted with its collection: %v", err)
	}
}
