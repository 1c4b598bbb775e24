package allocation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

func asking(uid, cpu string) *core.Pod {
	pod := &core.Pod{}
	pod.UID = "uid-1"
	if uid != "" {
		pod.UID = "uid-2"
	}
	pod.Spec.Containers = []core.Container{{Name: "c", Resources: requests(cpu)}}
	return pod
}

func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

func cpuOf(pod *core.Pod) string { return pod.Spec.Containers[0].Resources.Requests.Cpu().String() }

func always(*core.Pod, func(*core.Pod) *core.Pod) *core.PodCondition { return nil }

func TestGrant(t *testing.T) {
	m := New()
	pod := asking("", "1")
	if got := m.Allocate(pod, always); got != pod {
		t.Error("a new pod has what it asks for, without a copy")
	}
	more := asking("", "2")
	no := &core.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonDeferred}
	other := asking("other", "3")
	refuse := func(p *core.Pod, granted func(*core.Pod) *core.Pod) *core.PodCondition {
		if cpuOf(p) != "2" || cpuOf(granted(other)) != "3" {
			t.Errorf("asked about %s beside %s", cpuOf(p), cpuOf(granted(other)))
		}
		return no
	}
	if got := m.Allocate(more, refuse); cpuOf(got) != "1" || cpuOf(more) != "2" || m.Pending(more.UID) != no {
		t.Errorf("refused, it has %s, pending %v", cpuOf(got), m.Pending(more.UID))
	}
	if got := m.Allocate(more, always); cpuOf(got) != "2" || m.Pending(more.UID) != nil {
		t.Errorf("granted, it has %s, pending %v", cpuOf(got), m.Pending(more.UID))
	}
	if cpuOf(m.AsActual(more)) != "1" {
		t.Errorf("it runs with %s", cpuOf(m.AsActual(more)))
	}
	m.SetActual(more, "c", more.Spec.Containers[0].Resources)
	if granted, actual, known := m.Container(more.UID, "c"); !known || granted.Requests.Cpu().String() != "2" || actual.Requests.Cpu().String() != "2" {
		t.Errorf("applied, it has %v of %v", actual, granted)
	}
	m.Forget(more.UID)
	if _, known := m.Actual(more.UID, "c"); known {
		t.Error("forgotten, it is known")
	}
}

// TestGrantAfterRestart: a kubelet that starts in the middle of a resize learns
// from the pod's status what the containers have.
func TestGrantAfterRestart(t *testing.T) {
	m := New()
	pod := asking("", "2")
	has := requests("1")
	pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", Resources: &has}}
	if got := m.Allocate(pod, always); cpuOf(got) != "2" || cpuOf(m.AsActual(pod)) != "1" {
		t.Errorf("it was granted %s, and runs with %s", cpuOf(got), cpuOf(m.AsActual(pod)))
	}
}

// TestPodsAsAWhole: pod-level resources are granted together with the
// containers', and bound those containers that have no limits (KEP-5419).
func TestPodsAsAWhole(t *testing.T) {
	m := New()
	sized := func(cpu string) *core.Pod {
		pod := asking("", "1")
		pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
		return pod
	}
	limit := func(r corev1.ResourceRequirements) string { return r.Limits.Cpu().String() }
	if pod := sized("2"); m.Allocate(pod, nil) != pod {
		t.Error("a new pod has what it asks for, without a copy")
	}
	no := &core.PodCondition{Type: corev1.PodResizePending}
	if got := m.Allocate(sized("3"), func(*core.Pod, func(*core.Pod) *core.Pod) *core.PodCondition { return no }); limit(*got.Spec.Resources) != "2" {
		t.Errorf("refused, it has %v", got.Spec.Resources)
	}
	pod := m.Allocate(sized("3"), always)
	granted, actual, known := m.Container(pod.UID, Pod)
	if !known || limit(granted) != "3" || limit(actual) != "2" || limit(*m.AsActual(pod).Spec.Resources) != "2" {
		t.Errorf("granted %v, it has %v", granted, actual)
	}
	if r, _ := m.Actual(pod.UID, "c"); limit(r) != "2" {
		t.Errorf("before, its container is bounded by %v", r.Limits)
	}
	m.SetActual(pod, "c", pod.Spec.Containers[0].Resources)
	if r, _ := m.Actual(pod.UID, "c"); limit(r) != "3" {
		t.Errorf("then, its container is bounded by %v", r.Limits)
	}
	if _, own, _ := m.Container(pod.UID, "c"); len(own.Limits) > 0 {
		t.Errorf("the container's own limits are %v", own.Limits)
	}
	m.SetPodActual(pod.UID)
	if _, actual, _ := m.Container(pod.UID, Pod); limit(actual) != "3" {
		t.Errorf("in the end it has %v", actual)
	}

	after := New() // a kubelet that starts in the middle of the resize
	pod = sized("3")
	pod.Status.Resources = sized("2").Spec.Resources
	if got := after.Allocate(pod, always); limit(*got.Spec.Resources) != "3" || limit(*after.AsActual(pod).Spec.Resources) != "2" {
		t.Errorf("it was granted %v, and has %v", got.Spec.Resources, after.AsActual(pod).Spec.Resources)
	}

	bare := New() // the pod had no pod-level resources before
	bare.Allocate(asking("", "1"), always)
	if got := bare.Allocate(sized("3"), always); limit(*got.Spec.Resources) != "3" || bare.AsActual(got).Spec.Resources != nil {
		t.Errorf("it was granted %v, and had %v", got.Spec.Resources, bare.AsActual(got).Spec.Resources)
	}
}

// What is recorded of a pod with pod-level resources is understood again, also before its
// containers have started, when the limits in force are not known as such.
func TestRecordsOfPodsAsAWhole(t *testing.T) {
	pod := asking("", "1")
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	before := New()
	before.Admit(pod)
	records := before.Records()
	if limits := records[pod.UID].Actual["c"].Limits; limits.Cpu().String() != "2" {
		t.Errorf("its container is recorded with the limits %v", limits)
	}
	upstreams := New() // as upstream records it at first
	upstreams.Restore(map[types.UID]Record{pod.UID: {Granted: requirements(pod), Actual: requirements(pod)}})
	after := New()
	after.Restore(records)
	for name, m := range map[string]*Manager{"ours": after, "upstream's": upstreams} {
		m.Admit(pod)
		_, own, _ := m.Container(pod.UID, "c")
		if inForce, _ := m.Actual(pod.UID, "c"); m.Allocated(pod) != pod || m.AsActual(pod) != pod || len(own.Limits) > 0 {
			t.Errorf("%s: granted %+v, actual %+v, in force %+v", name, m.Allocated(pod).Spec, m.AsActual(pod).Spec, inForce)
		}
		if inForce, known := m.Actual(pod.UID, "c"); !known || inForce.Limits.Cpu().String() != "2" {
			t.Errorf("%s: in force %+v", name, inForce)
		}
	}
	bare := asking("", "1") // a pod that had none before
	grown := New()
	grown.Restore(map[types.UID]Record{pod.UID: {Granted: requirements(bare), Actual: requirements(bare)}})
	if grown.Allocated(pod).Spec.Resources != nil || grown.AsActual(pod).Spec.Resources != nil {
		t.Errorf("what it asks for now counts as granted: %+v", grown.Allocated(pod).Spec)
	}
}

// One of the two files can be lost. What the pod's status says stands in for it: pod-level
// resources stay granted, and a resize that was not done yet is done.
func TestHalfARecord(t *testing.T) {
	sized := func(cpu string) *core.Pod {
		pod := asking("", cpu)
		pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
		return pod
	}
	pod := sized("2")
	pod.Status.Resources = sized("1").Spec.Resources
	pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", Resources: &sized("1").Spec.Containers[0].Resources}}
	for name, c := range map[string]struct {
		record          Record
		granted, actual string
	}{
		"nothing":          {Record{}, "1", "1"},
		"what was granted": {Record{Granted: requirements(pod)}, "2", "1"},
		"what it has":      {Record{Actual: requirements(pod)}, "1", "2"},
	} {
		m := New()
		m.Restore(map[types.UID]Record{pod.UID: c.record})
		for what, is := range map[string]struct {
			pod  *core.Pod
			want string
		}{"granted": {m.Allocated(pod), c.granted}, "actual": {m.AsActual(pod), c.actual}} {
			spec := is.pod.Spec
			if spec.Resources == nil || spec.Resources.Limits.Cpu().String() != is.want || spec.Containers[0].Resources.Requests.Cpu().String() != is.want {
				t.Errorf("of %s: %s is %+v of %+v, want %s", name, what, spec.Containers[0].Resources, spec.Resources, is.want)
			}
		}
	}
}

// Only pods that were admitted are recorded, whoever asks what the others would have; those that
// an earlier kubelet admitted are, until they are forgotten.
func TestOnlyAdmittedPodsAreRecorded(t *testing.T) {
	m := New()
	pod, other := asking("", "1"), asking("other", "1")
	m.Restore(map[types.UID]Record{other.UID: {Granted: requirements(asking("other", "3"))}})
	m.AsActual(pod)
	if cpuOf(m.Allocated(pod)) != "1" || cpuOf(m.Allocated(other)) != "3" {
		t.Errorf("they would have %s and %s", cpuOf(m.Allocated(pod)), cpuOf(m.Allocated(other)))
	}
	if all := m.Records(); len(all) != 1 || all[other.UID].Granted == nil {
		t.Errorf("recorded, before they are admitted: %v", all)
	}
	m.Admit(pod)
	m.Forget(other.UID)
	if all := m.Records(); len(all) != 1 || all[pod.UID].Granted == nil {
		t.Errorf("recorded, when one was admitted and the other refused: %v", all)
	}
	later := asking("", "2")
	if cpuOf(m.Allocated(later)) != "1" {
		t.Errorf("it was admitted with 1, and has %s", cpuOf(m.Allocated(later)))
	}
}
