package handlers

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/apiserver/internal/scheme"
)

// TestProtobufThatIsNoJSON: a field of any content must be what can be stored.
func TestProtobufThatIsNoJSON(t *testing.T) {
	kind := appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	for data, refused := range map[string]bool{"{": true, "z": true, "{}": false} {
		revision := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(data)}}
		revision.SetGroupVersionKind(kind)
		var body bytes.Buffer
		if err := scheme.Protobuf.Encode(revision, &body); err != nil {
			t.Fatal(data, err)
		}
		if err := decodeProtobuf(body.Bytes(), &appsv1.ControllerRevision{}, kind); refused && !apierrors.IsBadRequest(err) || !refused && err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// TestOwnershipThatIsNoJSON: who owns which fields is dropped where it can't be read.
func TestOwnershipThatIsNoJSON(t *testing.T) {
	two := &metav1.FieldsV1{}
	two.SetRawBytes([]byte(`{"f:data":{}}{}`))
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsType: "FieldsV1", FieldsV1: two}}}}
	sent.SetGroupVersionKind(kind)
	var body bytes.Buffer
	if err := scheme.Protobuf.Encode(sent, &body); err != nil {
		t.Fatal(err)
	}
	read := &corev1.ConfigMap{}
	if err := decodeProtobuf(body.Bytes(), read, kind); err != nil || len(read.ManagedFields) > 0 {
		t.Errorf("%v is left: %v", read.ManagedFields, err)
	}
}

// TestProtobufListsAreUpstreams compares lists that are put together with those of the library.
func TestProtobufListsAreUpstreams(t *testing.T) {
	compared := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		plural, err := scheme.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		object, _ := scheme.Scheme.New(kind)
		one, ok := object.(message)
		if err != nil || !ok || !meta.IsListType(plural) {
			continue
		}
		named, err := meta.Accessor(object)
		if err != nil {
			continue
		}
		about := metav1.ListMeta{ResourceVersion: "7", Continue: "next"}
		for _, names := range [][]string{nil, {"a", ""}, {"long" + strings.Repeat("g", 500), "b", "c"}} {
			var objects [][]byte
			var items []runtime.Object
			for _, name := range names {
				named.SetName(name)
				text, err := one.Marshal()
				if err != nil {
					t.Fatal(kind, err)
				}
				objects, items = append(objects, text), append(items, object.DeepCopyObject())
			}
			if err := meta.SetList(plural, items); err != nil {
				t.Fatal(kind, err)
			}
			accessor, err := meta.ListAccessor(plural)
			if err != nil {
				t.Fatal(kind, err)
			}
			accessor.SetResourceVersion(about.ResourceVersion)
			accessor.SetContinue(about.Continue)
			plural.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			want, err := runtime.Encode(scheme.Protobuf, plural)
			if err != nil {
				t.Fatal(kind, err)
			}
			apiVersion, listKind := plural.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
			got, err := protobufParts(metav1.TypeMeta{Kind: listKind, APIVersion: apiVersion}, about, objects)
			if err != nil || !bytes.Equal(bytes.Join(got, nil), want) {
				t.Errorf("%s of %q: %v\n%q\n%q", kind, names, err, bytes.Join(got, nil), want)
			}
			compared++
		}
	}
	if compared < 150 {
		t.Errorf("compared only %d lists", compared)
	}
}

// TestProtobufEventsAreUpstreams compares events that are put together with those of the library.
func TestProtobufEventsAreUpstreams(t *testing.T) {
	for _, size := range []int{0, 1, 100, 127, 128, 20_000} {
		object := bytes.Repeat([]byte("x"), size)
		event := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: object}}
		body, err := event.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		want := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		if got := framed("MODIFIED", object[:size/2], object[size/2:]); !bytes.Equal(got, want) || cap(got) != len(got) {
			t.Errorf("%d bytes: %q (room for %d)\n%q", size, got, cap(got), want)
		}
	}
}

// BenchmarkDecodeProtobuf measures the decoding of a pod with all checks; its floor is the decoding alone.
func BenchmarkDecodeProtobuf(b *testing.B) {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", Labels: map[string]string{"app": "web"}}}
	for _, name := range []string{"web", "log", "proxy"} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.test/" + name + ":1", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
			Env:           []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}},
			Resources:     corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}},
		})
	}
	pod.SetGroupVersionKind(kind)
	var body bytes.Buffer
	if err := scheme.Protobuf.Encode(pod, &body); err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func() error{
		"checked": func() error { return decodeProtobuf(body.Bytes(), &corev1.Pod{}, kind) },
		"floor": func() error {
			_, _, err := scheme.Protobuf.Decode(body.Bytes(), &kind, &corev1.Pod{})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
