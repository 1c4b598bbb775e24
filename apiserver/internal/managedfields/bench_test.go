package managedfields

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// BenchmarkCreate is the cost of a new pod's managedFields; its floor is
// encoding the pod once.
func BenchmarkCreate(b *testing.B) {
	m := podTracker(b)
	pod := newPod()
	b.Run("managedFields", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod.ManagedFields = nil
			m.Update(pod, nil, nil, Manager{Name: "kubectl"})
		}
	})
	pod.ManagedFields = nil
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(pod); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		fieldManager, err := m.fieldManager("", nil)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			pod.ManagedFields = nil
			fieldManager.UpdateNoErrors(&core.Pod{TypeMeta: pod.TypeMeta}, pod, "kubectl")
		}
	})
}

// BenchmarkStatus is the cost of managedFields in a kubelet's status patch.
func BenchmarkStatus(b *testing.B) {
	m := podTracker(b)
	old := newPod()
	m.Update(old, nil, nil, Manager{Name: "kubectl"})
	next := func(old *core.Pod, message string) *core.Pod {
		obj := old.DeepCopy()
		obj.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True", Message: message}, {Type: "Initialized", Status: "True"}}
		return obj
	}
	before, _ := json.Marshal(old)
	first := next(old, "1")
	m.Update(first, old, before, Manager{Name: "kubelet", Subresource: "status"})
	before, _ = json.Marshal(first)
	second := next(first, "2")
	b.Run("managedFields", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			second.ManagedFields = nil
			m.Update(second, first, before, Manager{Name: "kubelet", Subresource: "status"})
		}
	})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := json.Marshal(first); err != nil {
				b.Fatal(err)
			}
		}
	})
}
