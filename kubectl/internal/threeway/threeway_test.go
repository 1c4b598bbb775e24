package threeway

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/proto/core"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func remember(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := Remember(u); err != nil {
		t.Fatal(err)
	}
	return u
}

const applied = `{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: "1", b: "2"}}, spec: {containers: [{name: c, image: i}]}}`

func TestRememberIsKubectls(t *testing.T) {
	u := remember(t, object(t, applied))
	want := `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{},"labels":{"a":"1","b":"2"},"name":"p"},"spec":{"containers":[{"image":"i","name":"c"}]}}` + "\n"
	if got := u.GetAnnotations()[LastApplied]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	again := remember(t, u.DeepCopy())
	if again.GetAnnotations()[LastApplied] != want {
		t.Errorf("remembering again changed it: %s", again.GetAnnotations()[LastApplied])
	}
}

func TestPatch(t *testing.T) {
	cases := []struct {
		name     string
		modified string
		others   func(current *unstructured.Unstructured) // what others changed meanwhile
		kind     types.PatchType
		want     string
	}{
		{name: "nothing", modified: applied, kind: types.StrategicMergePatchType, want: `{}`},
		{name: "others' fields stay", modified: applied, kind: types.StrategicMergePatchType, want: `{}`,
			others: func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"x/y"}) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			current := remember(t, object(t, applied))
			if c.others != nil {
				c.others(current)
			}
			patch, kind, err := Patch(schemaOf(t, current), current, remember(t, object(t, c.modified)), true)
			if err != nil {
				t.Fatal(err)
			}
			if string(patch) != c.want || kind != c.kind {
				t.Errorf("got %s %s, want %s %s", kind, patch, c.kind, c.want)
			}
		})
	}
}

// The annotation's part of a patch does not matter here.
func fieldsOf(t *testing.T, patch []byte) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal(patch, &content); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(content, "metadata", "annotations")
	return content
}

func TestPatchRemovesWhatIsNoLongerWanted(t *testing.T) {
	current := remember(t, object(t, applied))
	labels := current.GetLabels()
	labels["others"] = "stays"
	current.SetLabels(labels)
	modified := remember(t, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: "9"}}, spec: {containers: [{name: c, image: j}]}}`))
	patch, kind, err := Patch(schemaOf(t, current), current, modified, true)
	if err != nil {
		t.Fatal(err)
	}
	if kind != types.StrategicMergePatchType {
		t.Errorf("kind is %s", kind)
	}
	got, err := yaml.Marshal(fieldsOf(t, patch))
	if err != nil {
		t.Fatal(err)
	}
	want := `metadata:
  labels:
    a: "9"
    b: null
spec:
  $setElementOrder/containers:
  - name: c
  containers:
  - image: j
    name: c
`
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestPatchOfUnknownKinds(t *testing.T) {
	text := `{apiVersion: example.org/v1, kind: Thing, metadata: {name: t}, spec: {list: [1, 2]}}`
	current := remember(t, object(t, text))
	modified := remember(t, object(t, `{apiVersion: example.org/v1, kind: Thing, metadata: {name: t}, spec: {list: [3]}}`))
	patch, kind, err := Patch(schemaOf(t, current), current, modified, true)
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(fieldsOf(t, patch)["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if kind != types.MergePatchType || string(got) != "list:\n- 3\n" {
		t.Errorf("got %s %s", kind, got)
	}
}

// schemaOf is how the lists of an object's kind are merged; nil if there is no
// Go type.
func schemaOf(t *testing.T, of *unstructured.Unstructured) Schema {
	t.Helper()
	typed, err := core.Scheme.New(of.GroupVersionKind())
	if err != nil {
		return nil
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// An object that contradicts its schema, which a broken server may send, is an
// error and not a panic.
func TestContradiction(t *testing.T) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(core.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	modified := remember(t, object(t, applied))
	for _, text := range []string{
		`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [null]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, ports: [1]}, null]}}`,
	} {
		current := object(t, text)
		if _, _, err := Patch(schema, current, modified, true); err == nil {
			t.Errorf("%s: no error of Patch", text)
		}
		if _, _, err := TwoWay(schema, current, modified); err == nil {
			t.Errorf("%s: no error of TwoWay", text)
		}
		if _, err := Apply(schema, current, []byte(`{"spec":{"containers":[{"name":"c","image":"i"}]}}`), types.StrategicMergePatchType); err == nil {
			t.Errorf("%s: no error of Apply", text)
		}
	}
}

// What is created has no nulls, at any depth, as a patch would leave none. An item of a
// list that is null is an item.
func TestPrune(t *testing.T) {
	u := object(t, `{kind: Pod, spec: {a: null, b: {c: null, d: 1}, e: [{f: null, g: 2}, null]}}`)
	Prune(u.Object)
	if want := object(t, `{kind: Pod, spec: {b: {d: 1}, e: [{g: 2}, null]}}`); !reflect.DeepEqual(u, want) {
		t.Errorf("left %v, want %v", u, want)
	}
}

// A change is made on a copy, in each form of a patch. How lists are merged is for kinds
// that the server tells about only.
func TestApply(t *testing.T) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(core.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	before := object(t, applied)
	for _, test := range []struct {
		kind  types.PatchType
		patch string
		want  string // of the containers' images
	}{
		{types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"d","image":"j"}]}}`, "j i"},
		{types.MergePatchType, `{"spec":{"containers":[{"name":"d","image":"j"}]}}`, "j"},
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/containers/0/image","value":"k"}]`, "k"},
	} {
		changed, err := Apply(schema, before, []byte(test.patch), test.kind)
		if err != nil {
			t.Fatal(err)
		}
		var images []string
		containers, _, _ := unstructured.NestedSlice(changed.Object, "spec", "containers")
		for _, c := range containers {
			images = append(images, c.(map[string]any)["image"].(string))
		}
		if got := strings.Join(images, " "); got != test.want {
			t.Errorf("%s: images %s, want %s", test.kind, got, test.want)
		}
	}
	if !reflect.DeepEqual(before, object(t, applied)) {
		t.Errorf("the object itself was changed: %v", before)
	}
	if _, err := Apply(nil, before, []byte(`{}`), types.StrategicMergePatchType); err == nil || !strings.Contains(err.Error(), "try --type merge") {
		t.Errorf("a strategic merge of an unknown kind: %v", err)
	}
}
