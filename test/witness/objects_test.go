package witness_test

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"kctl/test/harness"
)

// finalizers keep a deleted object until the last of them is removed.
func finalizers(b bed) {
	maps := b.client.CoreV1().ConfigMaps(b.namespace)
	held := b.made("held", "x", func(m *corev1.ConfigMap) { m.Finalizers = []string{"example.org/one", "example.org/two"} })
	w, err := maps.Watch(b.Context(), metav1.ListOptions{ResourceVersion: held.ResourceVersion})
	b.must(err)
	defer w.Stop()
	b.must(maps.Delete(b.Context(), "held", metav1.DeleteOptions{}))
	b.must(maps.Delete(b.Context(), "held", metav1.DeleteOptions{}))
	ending, err := maps.Get(b.Context(), "held", metav1.GetOptions{})
	b.must(err)
	if ending.DeletionTimestamp == nil || ending.DeletionGracePeriodSeconds == nil || *ending.DeletionGracePeriodSeconds != 0 {
		b.Errorf("a deleted object: %+v", ending.ObjectMeta)
	}
	more := ending.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.org/three")
	if _, err := maps.Update(b.Context(), more, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		b.Errorf("a finalizer too late: %v", err)
	}
	for _, name := range []string{"example.org/one", "example.org/two"} {
		patch := `[{"op":"test","path":"/metadata/finalizers/0","value":"` + name + `"},{"op":"remove","path":"/metadata/finalizers/0"}]`
		_, err := maps.Patch(b.Context(), "held", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		b.must(err)
	}
	if _, err := maps.Get(b.Context(), "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		b.Errorf("after the last finalizer: %v", err)
	}
	var seen []watch.EventType
	for event := range w.ResultChan() {
		if m, ok := event.Object.(*corev1.ConfigMap); !ok || m.Name != "held" {
			continue
		}
		if seen = append(seen, event.Type); event.Type == watch.Deleted {
			break
		}
	}
	if want := []watch.EventType{watch.Modified, watch.Modified, watch.Deleted}; !slices.Equal(seen, want) {
		b.Errorf("the watch saw %v, want %v", seen, want)
	}
}

// owners are deleted with their dependents, after them, or without them.
func owners(b bed) {
	maps := b.client.CoreV1().ConfigMaps(b.namespace)
	gone := func(name string) func() error {
		return func() error {
			m, err := maps.Get(b.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return apierrors.NewConflict(configMaps.GroupResource(), name, apierrors.NewBadRequest("still there: "+m.String()))
		}
	}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		name := strings.ToLower(string(policy))
		owner := b.made(name, "x")
		b.made(name+"-owned", "x", func(m *corev1.ConfigMap) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true)}}
		})
		b.must(maps.Delete(b.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: metav1.NewUIDPreconditions(string(owner.UID))}))
		harness.Eventually(b, patience, gone(name))
		if policy != metav1.DeletePropagationOrphan {
			harness.Eventually(b, patience, gone(name+"-owned"))
			continue
		}
		left, err := maps.Get(b.Context(), name+"-owned", metav1.GetOptions{})
		if err != nil || len(left.OwnerReferences) != 0 {
			b.Errorf("the orphan: %+v, %v", left, err)
		}
	}
}

// serverSideApply by two managers that want the same field, of which one gives
// it up.
func serverSideApply(b bed) {
	maps := b.client.CoreV1().ConfigMaps(b.namespace)
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		return maps.Apply(b.Context(), applycorev1.ConfigMap("shared", b.namespace).WithData(data), metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	_, err := apply("first", false, map[string]string{"a": "1", "b": "1"})
	b.must(err)
	_, err = apply("second", false, map[string]string{"b": "2", "c": "2"})
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !asStatus(err, &status) || len(status.Status().Details.Causes) != 1 ||
		status.Status().Details.Causes[0].Type != metav1.CauseTypeFieldManagerConflict || status.Status().Details.Causes[0].Field != ".data.b" {
		b.Fatalf("the second manager: %v %+v", err, status)
	}
	m, err := apply("second", true, map[string]string{"b": "2", "c": "2"})
	b.must(err)
	first, err := applycorev1.ExtractConfigMap(m, "first")
	b.must(err)
	if len(first.Data) != 1 || first.Data["a"] != "1" {
		b.Errorf("the first manager still has %v", first.Data)
	}
	// A field that no manager applies any more is removed; one that another still
	// owns stays.
	m, err = apply("first", false, nil)
	b.must(err)
	if text, _ := json.Marshal(m.Data); string(text) != `{"b":"2","c":"2"}` {
		b.Errorf("left is %s", text)
	}
	same, err := apply("second", false, map[string]string{"b": "2", "c": "2"})
	b.must(err)
	if again, err := apply("second", false, map[string]string{"b": "2", "c": "2"}); err != nil || again.ResourceVersion != same.ResourceVersion {
		b.Errorf("applied again, it changed from %s to %s, %v", same.ResourceVersion, again.ResourceVersion, err)
	}
}

// strategicMerge merges a pod's lists by their keys.
func strategicMerge(b bed) {
	templates := b.client.CoreV1().PodTemplates(b.namespace)
	_, err := templates.Create(b.Context(), &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "t"},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{Name: "a", Image: "a:1", Env: []corev1.EnvVar{{Name: "X", Value: "1"}, {Name: "Y", Value: "1"}}},
				{Name: "b", Image: "b:1"},
			},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}},
	}, metav1.CreateOptions{})
	b.must(err)
	for _, step := range []struct{ patch, want string }{
		{`{"containers":[{"name":"b","image":"b:2"},{"name":"a","env":[{"name":"Y","value":"2"}]}]}`, "b=b:2 | a=a:1 X=1 Y=2"},
		{`{"$setElementOrder/containers":[{"name":"c"},{"name":"a"},{"name":"b"}],"containers":[{"name":"c","image":"c:1"}]}`, "c=c:1 | a=a:1 X=1 Y=2 | b=b:2"},
		{`{"containers":[{"$patch":"delete","name":"b"},{"name":"a","env":[{"$patch":"delete","name":"X"}]}]}`, "c=c:1 | a=a:1 Y=2"},
		{`{"containers":[{"$patch":"replace"},{"name":"d","image":"d:1"}]}`, "d=d:1"},
	} {
		t, err := templates.Patch(b.Context(), "t", types.StrategicMergePatchType, []byte(`{"template":{"spec":`+step.patch+`}}`), metav1.PatchOptions{})
		if err != nil {
			b.Fatalf("%s: %v", step.patch, err)
		}
		var got []string
		for _, c := range t.Template.Spec.Containers {
			words := []string{c.Name + "=" + c.Image}
			for _, e := range c.Env {
				words = append(words, e.Name+"="+e.Value)
			}
			got = append(got, strings.Join(words, " "))
		}
		if strings.Join(got, " | ") != step.want {
			b.Errorf("%s makes %v, want %s", step.patch, got, step.want)
		}
	}
	t, err := templates.Patch(b.Context(), "t", types.StrategicMergePatchType,
		[]byte(`{"template":{"spec":{"volumes":[{"name":"v","configMap":{"name":"m"},"$retainKeys":["name","configMap"]}]}}}`), metav1.PatchOptions{})
	b.must(err)
	if v := t.Template.Spec.Volumes; len(v) != 1 || v[0].EmptyDir != nil || v[0].ConfigMap == nil {
		b.Errorf("the volume of another kind: %+v", v)
	}
}
