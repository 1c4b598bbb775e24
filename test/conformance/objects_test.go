package conformance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"kctl/test/harness"
)

// templates and devices are kinds that the API keeps for others: a node does
// nothing with them.
var templates = []behaviour{
	{"PodTemplates should delete a collection of pod templates", deletesTemplates},
	{"PodTemplates should replace a pod template", replacesTemplate},
	{"PodTemplates should run the lifecycle of PodTemplates", templateLifecycle},
}

var devices = []behaviour{
	{"[DRA] CRUD Tests resource.k8s.io/v1 DeviceClass", crud("deviceclasses", false, `{"kind":"DeviceClass",
		"spec":{"selectors":[{"cel":{"expression":"device.driver == 'example.com'"}}]}}`, "")},
	{"[DRA] CRUD Tests resource.k8s.io/v1 ResourceClaim", crud("resourceclaims", true, `{"kind":"ResourceClaim",
		"spec":{"devices":{"requests":[{"name":"one","exactly":{"deviceClassName":"example.com"}}]}}}`,
		`{"allocation":{"devices":{"results":[{"request":"one","driver":"example.com","pool":"p","device":"d"}]}}}`)},
	{"[DRA] CRUD Tests resource.k8s.io/v1 ResourceClaimTemplate", crud("resourceclaimtemplates", true, `{"kind":"ResourceClaimTemplate",
		"spec":{"spec":{"devices":{"requests":[{"name":"one","exactly":{"deviceClassName":"example.com"}}]}}}}`, "")},
	{"[DRA] CRUD Tests resource.k8s.io/v1 ResourceSlice", crud("resourceslices", false, `{"kind":"ResourceSlice",
		"spec":{"driver":"example.com","nodeName":"elsewhere","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"d"}]}}`, "")},
}

func template(name string, labels map[string]string) *corev1.PodTemplate {
	return &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Template:   corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: harness.Demo}}}},
	}
}

func deletesTemplates(w *world) {
	of := w.client.CoreV1().PodTemplates(w.ns)
	for _, name := range []string{"one", "two", "three"} {
		_, err := of.Create(w.ctx, template(name, map[string]string{"set": "all"}), metav1.CreateOptions{})
		w.must(err)
	}
	_, err := of.Create(w.ctx, template("other", nil), metav1.CreateOptions{})
	w.must(err)
	w.must(of.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "set=all"}))
	left, err := of.List(w.ctx, metav1.ListOptions{})
	w.must(err)
	if len(left.Items) != 1 || left.Items[0].Name != "other" {
		w.t.Errorf("left are %v", left.Items)
	}
}

func replacesTemplate(w *world) {
	of := w.client.CoreV1().PodTemplates(w.ns)
	made, err := of.Create(w.ctx, template("t", map[string]string{"state": "made"}), metav1.CreateOptions{})
	w.must(err)
	made.Labels["state"] = "replaced"
	made.Template.Labels = map[string]string{"app": "x"}
	_, err = of.Update(w.ctx, made, metav1.UpdateOptions{})
	w.must(err)
	got, err := of.Get(w.ctx, "t", metav1.GetOptions{})
	w.must(err)
	if got.Labels["state"] != "replaced" || got.Template.Labels["app"] != "x" || got.ResourceVersion == made.ResourceVersion {
		w.t.Errorf("it is %+v", got)
	}
}

func templateLifecycle(w *world) {
	of := w.client.CoreV1().PodTemplates(w.ns)
	_, err := of.Create(w.ctx, template("t", map[string]string{"podtemplate": "static"}), metav1.CreateOptions{})
	w.must(err)
	all, err := w.client.CoreV1().PodTemplates("").List(w.ctx, metav1.ListOptions{LabelSelector: "podtemplate=static"})
	w.must(err)
	if !slices.ContainsFunc(all.Items, func(t corev1.PodTemplate) bool { return t.Namespace == w.ns }) {
		w.t.Error("it is not among those of all namespaces")
	}
	_, err = of.Patch(w.ctx, "t", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"podtemplate":"patched"}}}`), metav1.PatchOptions{})
	w.must(err)
	got, err := of.Get(w.ctx, "t", metav1.GetOptions{})
	w.must(err)
	if got.Labels["podtemplate"] != "patched" {
		w.t.Errorf("its labels are %v", got.Labels)
	}
	w.must(of.Delete(w.ctx, "t", metav1.DeleteOptions{}))
	if _, err := of.Get(w.ctx, "t", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("after its deletion: %v", err)
	}
}

// crud takes an object of the group resource.k8s.io through all verbs. status
// is what its status subresource is set to; "" if it has none.
func crud(resource string, namespaced bool, object, status string) func(*world) {
	return func(w *world) {
		all, err := dynamic.NewForConfig(w.Config("admin"))
		w.must(err)
		of := dynamic.ResourceInterface(all.Resource(schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: resource}))
		if namespaced {
			of = of.(dynamic.NamespaceableResourceInterface).Namespace(w.ns)
		}
		label := map[string]string{"test": w.ns}
		chosen := metav1.ListOptions{LabelSelector: "test=" + w.ns}
		seen, err := of.Watch(w.ctx, chosen)
		w.must(err)
		defer seen.Stop()
		made := make([]*unstructured.Unstructured, 3)
		for i := range made {
			o := &unstructured.Unstructured{}
			w.must(json.Unmarshal([]byte(object), o))
			o.SetAPIVersion("resource.k8s.io/v1")
			o.SetName(fmt.Sprintf("%s-%d", w.ns, i))
			o.SetLabels(maps.Clone(label))
			made[i], err = of.Create(w.ctx, o, metav1.CreateOptions{})
			w.must(err)
		}
		changes(w, of, made[0], status)
		w.must(of.Delete(w.ctx, made[1].GetName(), metav1.DeleteOptions{}))
		w.must(of.DeleteCollection(w.ctx, metav1.DeleteOptions{}, chosen))
		left, err := of.List(w.ctx, chosen)
		w.must(err)
		if len(left.Items) != 0 {
			w.t.Errorf("%d are left", len(left.Items))
		}
		w.tellsOf(seen, len(made))
	}
}

// changes updates and patches an object, and its status.
func changes(w *world, of dynamic.ResourceInterface, o *unstructured.Unstructured, status string) {
	w.t.Helper()
	got, err := of.Get(w.ctx, o.GetName(), metav1.GetOptions{})
	w.must(err)
	got.SetAnnotations(map[string]string{"updated": "true"})
	_, err = of.Update(w.ctx, got, metav1.UpdateOptions{})
	w.must(err)
	got, err = of.Patch(w.ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"patched":"true"}}}`), metav1.PatchOptions{})
	w.must(err)
	if a := got.GetAnnotations(); a["updated"] != "true" || a["patched"] != "true" {
		w.t.Errorf("its annotations are %v", a)
	}
	if status == "" {
		return
	}
	got, err = of.Patch(w.ctx, o.GetName(), types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
	w.must(err)
	if text, _ := json.Marshal(got.Object["status"]); !strings.Contains(string(text), `"driver":"example.com"`) {
		w.t.Errorf("its status is %s", text)
	}
	_, err = of.Patch(w.ctx, o.GetName(), types.MergePatchType, []byte(`{"status":null}`), metav1.PatchOptions{}, "status")
	w.must(err)
}

// tellsOf waits until a watch has shown n objects added and deleted, and at
// least one modified.
func (w *world) tellsOf(seen watch.Interface, n int) {
	w.t.Helper()
	told := map[watch.EventType]int{}
	for told[watch.Added] < n || told[watch.Deleted] < n || told[watch.Modified] == 0 {
		select {
		case event, open := <-seen.ResultChan():
			if !open {
				w.t.Fatalf("the watch ended after %v", told)
			}
			told[event.Type]++
		case <-w.ctx.Done():
			w.t.Fatalf("the watch told %v", told)
		}
	}
}
