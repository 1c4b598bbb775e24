package bodylimit

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/scheme"
)

// field is a field of type bytes.
func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

func envelope(t *testing.T, kind schema.GroupVersionKind, raw []byte) []byte {
	t.Helper()
	apiVersion, name := kind.ToAPIVersionAndKind()
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: name}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(scheme.ProtobufPrefix), body...)
}

// deep is a definition with a schema of that many levels: version, its schema,
// and in that a "not" within a "not".
func deep(levels int) []byte {
	var inside []byte
	for range levels {
		inside = field(28, inside)
	}
	return field(2, field(7, field(4, field(1, inside))))
}

func TestProtobuf(t *testing.T) {
	pods, definitions, maps := corev1.SchemeGroupVersion.WithKind("Pod"), apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap")
	// Spec (2) of containers (2), which are empty: two bytes each.
	containers := field(2, bytes.Repeat(field(2, nil), maxParts))
	// Map keys do not count as objects.
	var data []byte
	for i := range uint64(2 * maxParts) {
		data = append(data, field(2, field(1, protowire.AppendVarint(nil, i)))...)
	}
	pod, err := (&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: strings.Repeat("\x12\x00", maxParts)}}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body []byte
		kind schema.GroupVersionKind // the requested kind
		bad  func(error) bool        // nil for none
	}{
		"a pod":                                {envelope(t, pods, pod), pods, nil},
		"many names":                           {envelope(t, maps, data), maps, nil},
		"many containers":                      {envelope(t, pods, containers), pods, apierrors.IsRequestEntityTooLargeError},
		"many containers of whatever":          {envelope(t, schema.GroupVersionKind{}, containers), pods, apierrors.IsRequestEntityTooLargeError},
		"many containers, asked for a map":     {envelope(t, pods, containers), maps, apierrors.IsRequestEntityTooLargeError},
		"a deep schema":                        {envelope(t, definitions, deep(maxDepth-10)), definitions, nil},
		"a schema without a ground":            {envelope(t, definitions, deep(maxDepth)), definitions, apierrors.IsBadRequest},
		"a kind that nobody knows":             {envelope(t, schema.GroupVersionKind{Version: "v9", Kind: "X"}, containers), pods, nil},
		"nothing":                              {nil, pods, nil},
		"a prefix":                             {[]byte(scheme.ProtobufPrefix), pods, nil},
		"a length that lies":                   {append([]byte(scheme.ProtobufPrefix), 0x12, 0xff, 0xff), pods, nil},
		"a length that lies, within an object": {envelope(t, pods, []byte{0x12, 0x7f, 0}), pods, nil},
	} {
		err := Protobuf(c.body, c.kind)
		if c.bad == nil && err != nil || c.bad != nil && !c.bad(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnswer: an answer may have as many parts as any body, and more if the question had.
func TestAnswer(t *testing.T) {
	list := func(parts int) []byte { return []byte("[" + strings.Repeat("{},", parts) + "1]") }
	for name, c := range map[string]struct {
		answer, question int
		ok               bool
	}{
		"many": {maxParts, 0, true}, "too many": {maxParts + 1, 0, false},
		"about many": {maxParts + 40_000, 10_000, true}, "too many about many": {maxParts + 40_001, 10_000, false},
	} {
		err := Answer(list(c.answer), list(c.question))
		if (err == nil) != c.ok || err != nil && !strings.HasPrefix(err.Error(), "the answer contains 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
