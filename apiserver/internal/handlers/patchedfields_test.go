package handlers

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

const storedPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u","labels":{"a":"b"},"finalizers":["x/y","z/z"],` +
	`"managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}},"subresource":"status"}]},` +
	`"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m"}}}],"tolerations":[{"key":"k"}]},` +
	`"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"podIPs":[{"ip":"10.0.0.1"}]}}`

// FuzzPatchedFields: the result of a patch is the same whether or not the
// untouched parts were set aside.
func FuzzPatchedFields(f *testing.F) {
	medias := seedPatches(f)
	for _, seed := range []string{
		`{"metadata":{"uid":"u"},"status":{"phase":"Failed","conditions":[{"type":"Ready","status":"False"},{"type":"X","status":"True"}]}}`,
		`{"metadata":{"managedFields":null}}`, `{"metadata":{"managedFields":[{}]},"status":null}`, `{"metadata":null}`,
		`{"metadata":{"$patch":"replace","name":"q"}}`,
		`{"status":{"$setElementOrder/conditions":[{"type":"Ready"}],"conditions":[{"type":"Ready","$patch":"delete"}]}}`,
		`{"apiVersion":"v2","kind":"Node"}`, `{"Spec":{"nodeName":"n"}}`, `{"spec":1}`, `{"status":{"podIPs":[{"ip":"10.0.0.2"}]},"unknown":{}}`, `{}`,
	} {
		for media := range medias {
			f.Add(uint8(media), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, media uint8, body []byte) {
		patch, err := readPatch(medias[int(media)%len(medias)], body, newPod)
		if err != nil || patch.fields == nil {
			return
		}
		whole, wholeErr := patchedPod(t, patch)
		current := decodedPod(t)
		putBack := patch.fields.setAside(current)
		inParts, partsErr := patchOf(t, patch, current)
		if (wholeErr == nil) != (partsErr == nil) || wholeErr != nil && wholeErr.Error() != partsErr.Error() {
			t.Fatalf("%s: %v of the whole, %v in parts", body, wholeErr, partsErr)
		}
		if wholeErr != nil {
			return
		}
		if putBack(inParts); !equality.Semantic.DeepEqual(whole, inParts) {
			t.Errorf("%s makes\n%s\nof the whole, and in parts\n%s", body, encodedPod(t, whole), encodedPod(t, inParts))
		}
	})
}

func patchedPod(t *testing.T, patch patcher) (core.Object, error) {
	return patchOf(t, patch, decodedPod(t))
}

func patchOf(t *testing.T, patch patcher, current core.Object) (core.Object, error) {
	after, err := patch.apply(encodedPod(t, current))
	if err != nil {
		return nil, err
	}
	obj := newPod()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(after, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func decodedPod(t *testing.T) core.Object {
	pod := newPod()
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(storedPod), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func encodedPod(t *testing.T, obj core.Object) []byte {
	text, err := scheme.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPatchLeavesWhatItDoesNotName: a status patch re-encodes nothing but the
// status.
func TestPatchLeavesWhatItDoesNotName(t *testing.T) {
	pod := decodedPod(t)
	putBack := patchedFieldsOf(map[string]any{"metadata": map[string]any{"uid": "u"}, "status": map[string]any{}}).setAside(pod)
	left := pod.(*core.Pod)
	if len(left.Spec.Containers) > 0 || len(left.ManagedFields) > 0 {
		t.Errorf("left to be encoded: %s", encodedPod(t, left))
	}
	if left.Name != "p" || len(left.Status.Conditions) != 1 {
		t.Errorf("set aside, too: %s", encodedPod(t, left))
	}
	into := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	putBack(into)
	if len(into.Spec.Containers) != 1 || len(into.ManagedFields) != 1 {
		t.Errorf("put back: %s", encodedPod(t, into))
	}
}

// TestPatchThatPanics: input on which the library panics is the client's error.
func TestPatchThatPanics(t *testing.T) {
	patch, err := strategicPatcher([]byte(`{"spec":{"$setElementOrder/tolerations":[{"key":"k"}],"tolerations":[]}}`), newPod())
	if err != nil {
		t.Fatal(err)
	}
	if after, err := patch.apply([]byte(storedPod)); !apierrors.IsBadRequest(err) {
		t.Errorf("%s, %v", after, err)
	}
}
