package witness_test

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"

	"kctl/test/harness"
)

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// boats defines a custom resource for the namespace and returns it.
func (b bed) boats() schema.GroupVersionResource {
	b.Helper()
	crd := b.unstructured(fmt.Sprintf(definition, b.namespace))
	all := b.dynamic().Resource(definitionsResource)
	_, err := all.Create(b.Context(), crd, metav1.CreateOptions{})
	b.must(err)
	harness.Eventually(b, patience, func() error {
		now, err := all.Get(b.Context(), crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, c := range conditions {
			if m := c.(map[string]any); m["type"] == "Established" && m["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("the definition is not established: %v", conditions)
	})
	return schema.GroupVersionResource{Group: b.namespace + ".example", Version: "v1", Resource: "boats"}
}

func (b bed) boat(name string, oars int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": b.namespace + ".example/v1", "kind": "Boat",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"oars": oars},
	}}
}

// custom: the dynamic client and its informer on a custom resource.
func custom(b bed) {
	resource := b.boats()
	boats := b.dynamic().Resource(resource).Namespace(b.namespace)
	j := &journal{}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(b.dynamic(), 0, b.namespace, nil)
	note := func(what string) func(any) {
		return func(obj any) {
			oars, _, _ := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "status", "oars")
			j.note(fmt.Sprintf("%s %d", what, oars))
		}
	}
	_, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note("added"), UpdateFunc: func(_, obj any) { note("changed")(obj) }, DeleteFunc: note("deleted")})
	b.must(err)
	ctx, cancel := context.WithCancel(b.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	made, err := boats.Create(b.Context(), b.boat("skiff", 2), metav1.CreateOptions{})
	b.must(err)
	b.must(unstructured.SetNestedField(made.Object, int64(2), "status", "oars"))
	b.must(unstructured.SetNestedField(made.Object, int64(7), "spec", "oars"))
	made, err = boats.UpdateStatus(b.Context(), made, metav1.UpdateOptions{})
	b.must(err)
	if oars, _, _ := unstructured.NestedInt64(made.Object, "spec", "oars"); oars != 2 || made.GetGeneration() != 1 {
		b.Errorf("a status changed the spec: %v", made.Object)
	}
	_, err = boats.Create(b.Context(), b.boat("galley", 50), metav1.CreateOptions{})
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !asStatus(err, &status) || len(status.Status().Details.Causes) != 1 || status.Status().Details.Causes[0].Field != "spec.oars" {
		b.Errorf("too many oars: %v", err)
	}
	applied, err := boats.Apply(b.Context(), "skiff", b.boat("skiff", 4), metav1.ApplyOptions{FieldManager: "witness", Force: true})
	b.must(err)
	if applied.GetGeneration() != 2 {
		b.Errorf("applied: %v", applied.Object)
	}
	b.must(boats.Delete(b.Context(), "skiff", metav1.DeleteOptions{}))
	j.becomes(b, "added 0", "changed 2", "changed 2", "deleted 2")
	b.must(b.dynamic().Resource(definitionsResource).Delete(b.Context(), resource.GroupResource().String(), metav1.DeleteOptions{}))
}

// metadataOnly: clients that read names and labels only.
func metadataOnly(b bed) {
	client, err := metadata.NewForConfig(b.c.Config("admin"))
	b.must(err)
	b.made("m", "secret", func(m *corev1.ConfigMap) { m.Labels = map[string]string{"set": "seen"} })
	maps := client.Resource(configMaps).Namespace(b.namespace)
	list, err := maps.List(b.Context(), metav1.ListOptions{LabelSelector: "set=seen"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "m" || list.Items[0].UID == "" {
		b.Fatalf("list: %+v, %v", list, err)
	}
	patched, err := maps.Patch(b.Context(), "m", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil || patched.Annotations["a"] != "b" {
		b.Errorf("patched: %+v, %v", patched, err)
	}
	w, err := maps.Watch(b.Context(), metav1.ListOptions{LabelSelector: "set=seen"})
	b.must(err)
	defer w.Stop()
	if m, ok := (<-w.ResultChan()).Object.(*metav1.PartialObjectMetadata); !ok || m.Name != "m" || m.Annotations["a"] != "b" {
		b.Errorf("watched: %+v", m)
	}
	b.must(maps.DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "set=seen"}))
	if _, err := maps.Get(b.Context(), "m", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		b.Errorf("after its end: %v", err)
	}
}

// discovers: everything served is found at once, including resources defined
// meanwhile.
func discovers(b bed) {
	direct := b.client.Discovery()
	groups, lists, err := direct.ServerGroupsAndResources()
	b.must(err)
	if len(groups) < 15 || len(lists) < len(groups) {
		b.Errorf("%d groups, %d lists", len(groups), len(lists))
	}
	preferred, err := direct.ServerPreferredResources()
	b.must(err)
	if !slices.ContainsFunc(preferred, func(l *metav1.APIResourceList) bool { return l.GroupVersion == "autoscaling/v2" }) {
		b.Error("autoscaling/v2 is not preferred")
	}
	paths, err := direct.OpenAPIV3().Paths()
	b.must(err)
	if _, ok := paths["apis/apps/v1"]; !ok {
		b.Errorf("OpenAPI v3 has %d paths, and not apis/apps/v1", len(paths))
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(direct))
	kind := schema.GroupKind{Group: b.namespace + ".example", Kind: "Boat"}
	if mapping, err := mapper.RESTMapping(kind); err == nil {
		b.Errorf("a kind that is not there is %v", mapping.Resource)
	}
	resource := b.boats()
	mapper.Reset()
	mapping, err := mapper.RESTMapping(kind, "v1")
	if err != nil || mapping.Resource != resource || mapping.Scope.Name() != "namespace" {
		b.Errorf("the new kind is %+v, %v", mapping, err)
	}
	b.must(b.dynamic().Resource(definitionsResource).Delete(b.Context(), resource.GroupResource().String(), metav1.DeleteOptions{}))
}

// scales: one client for all kinds that have replicas.
func scales(b bed) {
	labels := map[string]string{"app": "web"}
	_, err := b.client.AppsV1().Deployments(b.namespace).Create(b.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
			},
		},
	}, metav1.CreateOptions{})
	b.must(err)
	resource := b.boats()
	_, err = b.dynamic().Resource(resource).Namespace(b.namespace).Create(b.Context(), b.boat("web", 1), metav1.CreateOptions{})
	b.must(err)
	direct := b.client.Discovery()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(direct))
	client, err := scale.NewForConfig(b.c.Config("admin"), mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(direct))
	b.must(err)
	for _, group := range []schema.GroupResource{{Group: "apps", Resource: "deployments"}, resource.GroupResource()} {
		s, err := client.Scales(b.namespace).Get(b.Context(), group, "web", metav1.GetOptions{})
		b.must(err)
		s.Spec.Replicas = 3
		_, err = client.Scales(b.namespace).Update(b.Context(), group, s, metav1.UpdateOptions{})
		b.must(err)
		s.Spec.Replicas = 4 // at an old resource version
		if _, err = client.Scales(b.namespace).Update(b.Context(), group, s, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			b.Errorf("%s: a stale scale: %v", group, err)
		}
		var now *autoscalingv1.Scale
		if now, err = client.Scales(b.namespace).Get(b.Context(), group, "web", metav1.GetOptions{}); err != nil || now.Spec.Replicas != 3 {
			b.Errorf("%s: %+v, %v", group, now, err)
		}
	}
	b.must(b.dynamic().Resource(definitionsResource).Delete(b.Context(), resource.GroupResource().String(), metav1.DeleteOptions{}))
}
