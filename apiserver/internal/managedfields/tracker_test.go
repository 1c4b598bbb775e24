package managedfields

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

func podTracker(t testing.TB) *Tracker {
	t.Helper()
	return New(Options{
		Kind: core.Pods.GVK(), Schema: func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeFor[core.Pod]()) },
		New:   func() core.Object { return &core.Pod{} },
		Reset: map[string][]string{"": {"status"}, "status": {"spec"}},
		Clock: clocktesting.NewFakePassiveClock(time.Now()),
	})
}

func newPod() *core.Pod {
	return &core.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", Labels: map[string]string{"a": "1", "b": "2"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Image: "nginx",
				Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}, {ContainerPort: 1000, Protocol: "UDP"}},
				Env:   []corev1.EnvVar{{Name: "A", Value: "b"}},
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
				},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("x"), Path: "/<&>"}}},
			}},
			SecurityContext: &corev1.PodSecurityContext{},
			NodeSelector:    map[string]string{"disk": "ssd"},
			Volumes:         []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// changes are changes to a pod, each of which may come at any time.
var changes = []func(p *core.Pod, i int){
	func(p *core.Pod, i int) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[fmt.Sprint("l", i)] = fmt.Sprint(rand.N(3))
	},
	func(p *core.Pod, i int) { delete(p.Labels, fmt.Sprint("l", i)) },
	func(p *core.Pod, _ int) { p.Labels = nil },
	func(p *core.Pod, i int) { p.Finalizers = append(p.Finalizers, fmt.Sprint("x/", i)) },
	func(p *core.Pod, _ int) { p.Finalizers = nil },
	func(p *core.Pod, _ int) { p.Spec.NodeSelector = map[string]string{"disk": fmt.Sprint(rand.N(3))} },
	func(p *core.Pod, _ int) { p.Spec.NodeSelector = nil },
	func(p *core.Pod, i int) { p.Spec.Containers[0].Image = fmt.Sprint("i", i) },
	func(p *core.Pod, i int) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d%d", i, rand.N(1000000)), Image: "x"})
	},
	func(p *core.Pod, _ int) { p.Spec.Containers = p.Spec.Containers[:1] },
	func(p *core.Pod, i int) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: int32(i), Protocol: "TCP"}, {ContainerPort: 9, Protocol: "TCP", HostIP: fmt.Sprint(i)}}
	},
	func(p *core.Pod, _ int) { p.Spec.Containers[0].Ports = nil },
	func(p *core.Pod, _ int) { p.Spec.Containers[0].Env = []corev1.EnvVar{} },
	func(p *core.Pod, i int) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: fmt.Sprint(i)}, {Name: fmt.Sprint("B", i)}}
	},
	func(p *core.Pod, _ int) { p.Spec.Containers[0].Env = nil },
	func(p *core.Pod, i int) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: fmt.Sprint(i)}}}}
	},
	func(p *core.Pod, _ int) { p.Spec.Containers[0].LivenessProbe = nil },
	func(p *core.Pod, i int) {
		p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{fmt.Sprint(i)}}}}
	},
	func(p *core.Pod, i int) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(i))}
	},
	func(p *core.Pod, _ int) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
	func(p *core.Pod, _ int) { p.Spec.SecurityContext = nil },
	func(p *core.Pod, i int) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(i)), SupplementalGroups: []int64{int64(i), 2}}
	},
	func(p *core.Pod, _ int) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} },
	func(p *core.Pod, _ int) { p.Spec.Volumes = nil },
	func(p *core.Pod, i int) {
		p.Spec.Volumes = []corev1.Volume{{Name: fmt.Sprint("w", i%2), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint(i)}}}}}}}}
	},
	func(p *core.Pod, i int) {
		p.OwnerReferences = []metav1.OwnerReference{{UID: "u1", Name: fmt.Sprint(i)}, {UID: "u2"}}
	},
	func(p *core.Pod, i int) {
		p.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: corev1.PodConditionType(fmt.Sprint(i)), Message: "x"}}
	},
	func(p *core.Pod, i int) {
		p.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprint("10.0.0.", i)}}
		p.Status.HostIPs = []corev1.HostIP{{IP: fmt.Sprint("10.0.0.", i)}}
	},
	func(p *core.Pod, i int) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			TopologyKey: "a", WhenUnsatisfiable: "DoNotSchedule", MaxSkew: int32(i),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": fmt.Sprint(i)}},
		}}
	},
	func(p *core.Pod, i int) {
		p.Annotations = map[string]string{"q": `"` + fmt.Sprint(i) + `"` + "\u2028<"}
	},
	func(p *core.Pod, _ int) { p.Annotations = map[string]string{} },
	func(p *core.Pod, _ int) { p.Spec.Containers[0].Command = nil },
	func(p *core.Pod, i int) { p.Spec.Containers[0].Command = []string{"a", fmt.Sprint(i)} },
}

// seeds is the number of pods.
const seeds = 150

// TestOwnershipAsTheLibraryHasIt writes to pods in every way and compares the
// managedFields with those of upstream's library.
func TestOwnershipAsTheLibraryHasIt(t *testing.T) {
	m := podTracker(t)
	unusual := 0
	for seed := range seeds {
		old := (*core.Pod)(nil)
		var done []int
		for step := range 8 {
			obj := newPod()
			if old != nil {
				obj = old.DeepCopy()
			}
			for range 1 + rand.N(3) {
				change := rand.N(len(changes))
				changes[change](obj, rand.N(4))
				done = append(done, change)
			}
			by := Manager{Name: fmt.Sprint("m", rand.N(4)), Subresource: []string{"", "status"}[min(step, rand.N(2))]}
			next, usual := compareOnce(t, m, obj, old, by)
			if !usual {
				unusual++
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d by %v after %v", seed, step, by, done)
			}
			next.CreationTimestamp = metav1.Now()
			for i := range next.ManagedFields {
				next.ManagedFields[i].Time = &metav1.Time{Time: next.ManagedFields[i].Time.Add(-time.Hour)}
			}
			old = next
		}
	}
	t.Logf("%d of %d writes were left to the library", unusual, seeds*8)
	if unusual > seeds*8/4 {
		t.Errorf("%d of %d writes were left to the library", unusual, seeds*8)
	}
}

func compareOnce(t *testing.T, m *Tracker, obj, old *core.Pod, by Manager) (*core.Pod, bool) {
	t.Helper()
	ours, theirs := obj.DeepCopy(), obj.DeepCopy()
	var before []byte
	var oldObject core.Object
	if old != nil {
		oldObject = old
		var err error
		if before, err = json.Marshal(old); err != nil {
			t.Fatal(err)
		}
	}
	fieldManager, err := m.fieldManager(by.Subresource, nil)
	if err != nil {
		t.Fatal(err)
	}
	live := &core.Pod{TypeMeta: obj.TypeMeta}
	if old != nil {
		live = old
	}
	result, err := fieldManager.Update(live.DeepCopy(), theirs, by.Name)
	if err != nil {
		t.Logf("the library says %v", err)
		return obj, false
	}
	want := result.(*core.Pod)
	if err := m.track(ours, oldObject, before, by); err != nil {
		return want, false
	}
	a, b := printed(ours.ManagedFields), printed(want.ManagedFields)
	if a != b {
		oldText := "nothing"
		if old != nil {
			oldText = printed(old.ManagedFields) + "\n" + string(before)
		}
		newText, _ := json.Marshal(obj)
		t.Errorf("from %s\n  to %s\n got %s\nwant %s", oldText, newText, a, b)
	}
	return want, true
}

// printed shows of a time only whether it is of this test: older ones are an
// hour older.
func printed(entries []metav1.ManagedFieldsEntry) string {
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%s %s %q now: %t %s", e.Manager, e.Operation, e.Subresource, time.Since(e.Time.Time) < 30*time.Minute, e.FieldsV1.Raw))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestSchemaIsMadeOnce: a definition with thousands of fields takes longer to turn into a
// schema than an apply may take, and each of these would stay in memory.
func TestSchemaIsMadeOnce(t *testing.T) {
	o, made := podTracker(t).options, 0
	schema := o.Schema
	o.Schema = func() *mergeschema.Schema {
		made++
		return schema()
	}
	tracker, p := New(o), newPod()
	tracker.Update(p, nil, nil, Manager{Name: "m"})
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "labels": map[string]any{"a": "1"}},
	}}
	for range 2 {
		if _, err := tracker.Apply(p, applied, Manager{Name: "n"}, false); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
}
