package conformance_test

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var resizes = []behaviour{
	{"Pod InPlace Resize Container burstable pods - extended 6 containers - various operations performed (including adding limits and requests)", resizeSix},
	{"Pod InPlace Resize Container burstable pods - extended resize with equivalents", resizeEquivalents},
	{"Pod InPlace Resize Container guaranteed pods with multiple containers 3 containers - increase cpu & mem on c1, c2, decrease cpu & mem on c3 - net increase",
		func(w *world) {
			w.resizes([]sizes{guaranteed("100m", "64Mi"), guaranteed("100m", "64Mi"), guaranteed("150m", "96Mi")},
				[]sizes{guaranteed("150m", "96Mi"), guaranteed("150m", "96Mi"), guaranteed("100m", "64Mi")}, w.patchResize)
		}},
	{"Pod InPlace Resize Container guaranteed pods with multiple containers 3 containers - increase cpu & mem on c1, decrease cpu & mem on c2, c3 - net decrease",
		func(w *world) {
			w.resizes([]sizes{guaranteed("100m", "64Mi"), guaranteed("150m", "96Mi"), guaranteed("150m", "96Mi")},
				[]sizes{guaranteed("120m", "80Mi"), guaranteed("100m", "64Mi"), guaranteed("100m", "64Mi")}, w.patchResize)
		}},
	{"Pod InPlace Resize Container guaranteed pods with multiple containers 3 containers - increase: CPU (c1,c3), memory (c2, c3) ; decrease: CPU (c2)",
		func(w *world) {
			w.resizes([]sizes{guaranteed("100m", "64Mi"), guaranteed("150m", "64Mi"), guaranteed("100m", "64Mi")},
				[]sizes{guaranteed("150m", "64Mi"), guaranteed("100m", "96Mi"), guaranteed("150m", "96Mi")}, w.patchResize)
		}},
	{"Pod InPlace Resize Container resize pod via the replace endpoint", func(w *world) {
		w.resizes([]sizes{guaranteed("100m", "64Mi")}, []sizes{guaranteed("200m", "128Mi")}, w.replaceResize)
	}},
	// Not one of upstream's tests, but users meet it.
	{"resize: a container that asks for it is restarted", resizeRestarts},
	{"resize: a pod as a whole", resizePod},
	{"resize: what the node cannot give stays pending", resizePending},
}

// sizes are one container's resources.
type sizes = corev1.ResourceRequirements

func guaranteed(cpu, memory string) sizes {
	return sizes{Requests: list(cpu, memory), Limits: list(cpu, memory)}
}

func burstable(requests, limits corev1.ResourceList) sizes {
	return sizes{Requests: requests, Limits: limits}
}

// sized is a pod with a container for each element of all: c0, c1, …
func (w *world) sized(all []sizes) *corev1.Pod {
	pod := w.lasting("sized")
	first := pod.Spec.Containers[0]
	pod.Spec.Containers = nil
	for i, resources := range all {
		c := *first.DeepCopy()
		c.Name, c.Resources = fmt.Sprintf("c%d", i), resources
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

func (w *world) patchResize(_ *corev1.Pod, all []sizes) {
	w.t.Helper()
	var containers []map[string]any
	for i, resources := range all {
		containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "resources": resources})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": containers}})
	w.must(err)
	_, err = w.pods().Patch(w.ctx, "sized", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
	w.must(err)
}

func (w *world) replaceResize(pod *corev1.Pod, all []sizes) {
	w.t.Helper()
	pod = pod.DeepCopy()
	pod.ResourceVersion = "" // the kubelet may have written it meanwhile
	for i, resources := range all {
		pod.Spec.Containers[i].Resources = resources
	}
	_, err := w.pods().UpdateResize(w.ctx, "sized", pod, metav1.UpdateOptions{})
	w.must(err)
}

// resizes changes a running pod and checks its status and control groups. No
// container may restart.
func (w *world) resizes(before, after []sizes, change func(*corev1.Pod, []sizes)) {
	w.t.Helper()
	pod := w.start(w.sized(before))
	w.has(before, 1)
	change(pod, after)
	w.has(after, 2)
}

// has waits until the pod's status shows these resources, and then checks the
// control groups.
func (w *world) has(want []sizes, generation int64) {
	w.t.Helper()
	pod := w.await("sized", "resized", func(p *corev1.Pod) bool {
		if p.Status.ObservedGeneration != generation || condition(p, corev1.PodResizeInProgress) != nil || condition(p, corev1.PodResizePending) != nil {
			return false
		}
		for i, s := range p.Status.ContainerStatuses {
			if s.Resources == nil || !equality.Semantic.DeepEqual(*s.Resources, want[i]) || !equality.Semantic.DeepEqual(s.AllocatedResources, want[i].Requests) {
				return false
			}
		}
		return true
	})
	for i, s := range pod.Status.ContainerStatuses {
		if s.RestartCount != 0 {
			w.t.Errorf("%s was restarted", s.Name)
		}
		if limit := want[i].Limits.Memory(); !limit.IsZero() {
			w.reads(s.Name, "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes", fmt.Sprint(limit.Value()))
		}
		if limit := want[i].Limits.Cpu(); !limit.IsZero() {
			w.reads(s.Name, "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", fmt.Sprint(max(limit.MilliValue()*100, leastQuota)))
		}
	}
}

// leastQuota is the smallest CPU quota that the kernel takes, in microseconds.
const leastQuota = 1000

// reads compares the first word of a control group's file, in cgroup v2 or v1.
func (w *world) reads(container, file2, file1, want string) {
	w.t.Helper()
	text := w.exec("sized", container, "sh", "-c", "cat "+file2+" 2>/dev/null || cat "+file1)
	if word, _, _ := strings.Cut(strings.TrimSpace(text), " "); word != want {
		w.t.Errorf("%s of %s is %q, want %s", file1, container, text, want)
	}
}

func resizeSix(w *world) {
	w.resizes([]sizes{
		burstable(list("20m", "32Mi"), list("40m", "64Mi")),
		burstable(list("20m", "32Mi"), list("40m", "64Mi")),
		burstable(list("20m", "32Mi"), list("40m", "64Mi")),
		burstable(list("20m", "32Mi"), nil),
		{},
		guaranteed("20m", "32Mi"),
	}, []sizes{
		burstable(list("30m", "48Mi"), list("60m", "96Mi")),
		burstable(list("10m", "16Mi"), list("30m", "48Mi")),
		burstable(list("40m", "32Mi"), list("60m", "64Mi")),
		burstable(list("20m", "32Mi"), list("40m", "64Mi")), // limits are added
		burstable(list("10m", "16Mi"), nil),                 // requests are added
		guaranteed("20m", "32Mi"),
	}, w.patchResize)
}

// resizeEquivalents: changes too small for the kernel to see are accepted all
// the same.
func resizeEquivalents(w *world) {
	w.resizes([]sizes{burstable(list("2m", "32Mi"), list("10m", "64Mi"))}, []sizes{burstable(list("1m", "32Mi"), list("5m", "65536Ki"))},
		func(_ *corev1.Pod, all []sizes) { w.patchResize(nil, all) })
}

func resizeRestarts(w *world) {
	pod := w.sized([]sizes{guaranteed("100m", "64Mi")})
	pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
	w.start(pod)
	w.patchResize(nil, []sizes{guaranteed("120m", "64Mi")})
	w.has([]sizes{guaranteed("120m", "64Mi")}, 2)
	w.patchResize(nil, []sizes{guaranteed("120m", "96Mi")})
	w.await("sized", "restarted with more memory", func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.Resources != nil && equality.Semantic.DeepEqual(*s.Resources, guaranteed("120m", "96Mi"))
	})
	w.reads("c0", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes", fmt.Sprint(96<<20))
}

// resizePod: a container without limits of its own follows the pod's. Memory in
// use is not taken away.
func resizePod(w *world) {
	pod := w.sized([]sizes{{}, guaranteed("20m", "32Mi")})
	whole := burstable(list("50m", "64Mi"), list("100m", "128Mi"))
	pod.Spec.Resources = &whole
	w.start(pod)
	change := func(to sizes) {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"resources": to}})
		w.must(err)
		_, err = w.pods().Patch(w.ctx, "sized", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
		w.must(err)
	}
	has := func(want sizes, generation int64) {
		w.t.Helper()
		w.has([]sizes{{}, guaranteed("20m", "32Mi")}, generation)
		pod := w.await("sized", "resized as a whole", func(p *corev1.Pod) bool {
			return p.Status.Resources != nil && equality.Semantic.DeepEqual(*p.Status.Resources, want)
		})
		if !equality.Semantic.DeepEqual(pod.Status.AllocatedResources, want.Requests) {
			w.t.Errorf("granted are %v", pod.Status.AllocatedResources)
		}
		w.reads("c0", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes", fmt.Sprint(want.Limits.Memory().Value()))
		w.reads("c0", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", fmt.Sprint(want.Limits.Cpu().MilliValue()*100))
	}
	has(whole, 1)
	for generation, to := range []sizes{burstable(list("80m", "96Mi"), list("200m", "192Mi")), burstable(list("40m", "48Mi"), list("60m", "64Mi"))} {
		change(to)
		has(to, int64(generation)+2)
	}
	w.exec("sized", "c0", "dd", "if=/dev/zero", "of=/dev/shm/used", "bs=1M", "count=40")
	less := burstable(list("40m", "36Mi"), list("60m", "36Mi"))
	change(less)
	w.await("sized", "refused memory that is used", func(p *corev1.Pod) bool {
		c := condition(p, corev1.PodResizeInProgress)
		return c != nil && c.Reason == corev1.PodReasonError && strings.Contains(c.Message, "memory limit (37748736) below current usage (")
	})
	w.exec("sized", "c0", "rm", "/dev/shm/used")
	has(less, 4)
}

// resizePending: what a node of this size can never give is infeasible at once;
// what other pods have now is deferred until they are gone.
func resizePending(w *world) {
	pod := w.start(w.sized([]sizes{burstable(list("100m", "64Mi"), nil)}))
	_, err := w.pods().Patch(w.ctx, "sized", types.StrategicMergePatchType,
		[]byte(`{"spec": {"containers": [{"name": "c0", "resources": {"requests": {"cpu": "1000"}}}]}}`), metav1.PatchOptions{}, "resize")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "node didn't have enough allocatable resources: cpu, requested: 1000000") {
		w.t.Errorf("a thousand CPUs: %v", err)
	}
	node, err := w.client.CoreV1().Nodes().Get(w.ctx, pod.Spec.NodeName, metav1.GetOptions{})
	w.must(err)
	part := func(percent int64) string {
		return fmt.Sprintf("%dm", node.Status.Allocatable.Cpu().MilliValue()*percent/100)
	}
	neighbour := w.lasting("neighbour")
	neighbour.Spec.Containers[0].Resources.Requests = list(part(50), "16Mi")
	w.start(neighbour)
	wish := []sizes{burstable(list(part(60), "64Mi"), nil)}
	w.patchResize(nil, wish)
	pod = w.await("sized", "told to wait", func(p *corev1.Pod) bool {
		c := condition(p, corev1.PodResizePending)
		return c != nil && c.Reason == corev1.PodReasonDeferred
	})
	if s := pod.Status.ContainerStatuses[0]; s.AllocatedResources.Cpu().MilliValue() != 100 || s.RestartCount != 0 {
		w.t.Errorf("meanwhile it has %+v", s)
	}
	w.delete("neighbour")
	w.has(wish, 2)
}
