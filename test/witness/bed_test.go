package witness_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kctl/test/harness"
)

// bed is an API server without nodes, on an etcd that can be compacted, and a
// namespace of the test's own.
type bed struct {
	*testing.T
	c         *harness.Cluster
	etcd      *harness.Etcd
	client    *kubernetes.Clientset
	namespace string
}

// TestServer runs client-go's machinery against the API server alone.
func TestServer(t *testing.T) {
	etcd := harness.StartEtcd(t)
	c := harness.Start(t, harness.Options{
		Without: []string{"containerd", "scheduler", "kubelet", "registry"},
		Flags:   []string{"--etcd-servers", etcd.URL},
	})
	for _, part := range []struct {
		name string
		do   func(bed)
	}{
		{"watch-list", watchList}, {"finalizers", finalizers}, {"owners", owners}, {"apply", serverSideApply},
		{"merge", strategicMerge}, {"election", election}, {"discovery", discovers}, {"custom", custom},
		{"metadata", metadataOnly}, {"scale", scales},
		// These stop the server for a moment.
		{"restart", restarted}, {"resume", resumed}, {"expiry", expired},
	} {
		t.Run(part.name, func(t *testing.T) {
			b := bed{T: t, c: c.In(t), etcd: etcd, client: c.In(t).Client(), namespace: part.name}
			_, err := b.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: part.name}}, metav1.CreateOptions{})
			b.must(err)
			part.do(b)
		})
	}
}

func (b bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// made creates a config map with one value.
func (b bed) made(name, value string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	b.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": value}}
	for _, f := range change {
		f(m)
	}
	m, err := b.client.CoreV1().ConfigMaps(b.namespace).Create(b.Context(), m, metav1.CreateOptions{})
	b.must(err)
	return m
}

func (b bed) dynamic() *dynamic.DynamicClient {
	b.Helper()
	client, err := dynamic.NewForConfig(b.c.Config("admin"))
	b.must(err)
	return client
}

// unstructured reads an object from YAML.
func (b bed) unstructured(text string) *unstructured.Unstructured {
	b.Helper()
	data, err := yaml.ToJSON([]byte(text))
	b.must(err)
	obj := &unstructured.Unstructured{}
	b.must(json.Unmarshal(data, &obj.Object))
	return obj
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
