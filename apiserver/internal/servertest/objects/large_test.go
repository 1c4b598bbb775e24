package objects

import (
	"bytes"
	"context"
	"reflect"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// TestLargeObjects: what fits into etcd as upstream stores it, in protobuf, can be created, changed
// and finalized, although it is larger than etcd's limit in JSON.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.AwaitServiceAccount("default")
	data := func(value string) *core.ConfigMap { return &core.ConfigMap{Data: map[string]string{"a": value}} }
	environment := make([]corev1.EnvVar, 100)
	for i := range environment {
		environment[i] = corev1.EnvVar{Name: "V" + strconv.Itoa(i), Value: strings.Repeat("&", 3_000)}
	}
	for name, test := range map[string]struct {
		resource core.Resource
		object   core.Object
		above    int // what the JSON has more bytes than
	}{
		"markup":   {core.ConfigMaps, data(strings.Repeat(`<a href="b">&amp;</a>`, 35_000)), 3 << 19},
		"brackets": {core.ConfigMaps, data(strings.Repeat("<", 400_000)), 2 << 20},
		"quotes":   {core.ConfigMaps, data(strings.Repeat(`"`, 1_000_000)), 3 << 19},
		"controls": {core.ConfigMaps, data(strings.Repeat("\x01", 300_000)), 3 << 19},
		"binary":   {core.ConfigMaps, &core.ConfigMap{BinaryData: map[string][]byte{"a": make([]byte, 1_000_000)}}, 1 << 20},
		"annotated": {core.Secrets, &core.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", 250_000)}}, Data: map[string][]byte{"a": make([]byte, 1_000_000)},
		}, 3 << 19},
		"containers": {core.Pods, &core.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Env: environment}}}}, 3 << 19},
	} {
		t.Run(name, func(t *testing.T) {
			kind := c.Root().Resource(test.resource, "default")
			test.object.SetName(name)
			test.object.SetFinalizers([]string{"example.com/held"})
			c.In(t).Must(kind.Create(t.Context(), test.object, test.object))
			created, err := scheme.Encode(test.object)
			if err != nil || len(created) < test.above {
				t.Fatalf("%d bytes of JSON, %v: not what is to be tested", len(created), err)
			}
			read := reflect.New(reflect.TypeOf(test.object).Elem()).Interface().(core.Object)
			c.In(t).Must(kind.Get(t.Context(), name, read))
			if got, err := scheme.Encode(read); err != nil || !bytes.Equal(got, created) {
				t.Errorf("created with %d bytes, read with %d, %v", len(created), len(got), err)
			}
			labels := []byte(`{"metadata":{"labels":{"changed":"yes"}}}`)
			c.In(t).Must(kind.Patch(t.Context(), name, types.MergePatchType, labels, test.object))
			if test.object.GetLabels()["changed"] != "yes" {
				t.Errorf("labels %v", test.object.GetLabels())
			}
			c.In(t).Must(kind.Delete(t.Context(), name, &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, nil))
			c.In(t).Must(kind.Get(t.Context(), name, test.object))
			if test.object.GetDeletionTimestamp() == nil {
				t.Error("not being deleted")
			}
			c.In(t).Must(kind.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil))
			c.In(t).Until("gone", func(ctx context.Context) bool { return apierrors.IsNotFound(kind.Get(ctx, name, test.object)) })
		})
	}
}

// TestTooLarge: who sends what no etcd takes is told which object, how large it is and what limits it.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.AwaitServiceAccount("default")
	huge := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "huge"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", Args: []string{strings.Repeat("x", 2<<20)}}},
	}}
	err := c.Root().Resource(core.Pods, "default").Create(t.Context(), huge, nil)
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), `pods "huge": value too large: 209`) ||
		!strings.Contains(err.Error(), "--max-request-bytes") {
		t.Errorf("%v", err)
	}
}
