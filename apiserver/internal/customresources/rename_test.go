package customresources

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/raw"
)

// renamedVersions are two versions of a definition without a webhook, of which the second
// lacks the field gone, and allows no null in maybe.
func renamedVersions(tb testing.TB) (view *convertedStore, stored *compiledVersion) {
	tb.Helper()
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := func(more string) *apiextensionsv1.CustomResourceValidation {
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"metadata": {Type: "object"},
				"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"size":   {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"small"`)}},
					more:     text,
					"maybe":  {Type: "string", Nullable: more == "gone"},
					"labels": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
					"items": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text, "value": {Type: "integer"}}}}},
				}},
			},
		}}
	}
	d := &definition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "c.io", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "C"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Schema: spec("gone")}, {Name: "v2", Schema: spec("came")},
		},
	}}
	versions := map[string]*compiledVersion{}
	for i := range d.Spec.Versions {
		f, err := compileVersion(d, &d.Spec.Versions[i])
		if err != nil {
			tb.Fatal(err)
		}
		versions[f.name] = f
	}
	return &convertedStore{converter: newConverter(d, versions, Options{}), version: versions["v2"]}, versions["v1"]
}

// storedObject is one of about 1.2 kB, as the store gives it.
func storedObject(tb testing.TB, i int, change func(spec map[string]any)) registry.Encoded {
	tb.Helper()
	labels, items := map[string]any{}, []any{}
	for j := range 15 {
		labels[fmt.Sprint("key", j)] = fmt.Sprint("value", j)
		items = append(items, map[string]any{"name": fmt.Sprint("name", j), "value": j})
	}
	spec := map[string]any{"size": "large", "labels": labels, "items": items}
	change(spec)
	text, err := json.Marshal(map[string]any{"apiVersion": "c.io/v1", "kind": "C", "spec": spec, "metadata": map[string]any{
		"name": fmt.Sprint("c", i), "namespace": "default", "generation": 1, "uid": "f3a4e5c6-0000-4000-8000-000000000000"}})
	if err == nil {
		text, err = raw.SetResourceVersion(text, int64(i))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return registry.Encoded{JSON: text, Revision: int64(i)}
}

// TestRenameIsTheSameWithoutDecoding: where objects are not decoded, they become what they
// would have become.
func TestRenameIsTheSameWithoutDecoding(t *testing.T) {
	view, stored := renamedVersions(t)
	for name, c := range map[string]struct {
		change  func(spec map[string]any)
		decodes bool
	}{
		"as usual":               {change: func(map[string]any) {}},
		"a field of both":        {change: func(spec map[string]any) { spec["labels"].(map[string]any)["more"] = `<&>"\` }},
		"a field of the first":   {change: func(spec map[string]any) { spec["gone"] = "x" }, decodes: true},
		"a field of the other":   {change: func(spec map[string]any) { spec["came"] = "x" }, decodes: true},
		"a default that is new":  {change: func(spec map[string]any) { delete(spec, "size") }, decodes: true},
		"a null":                 {change: func(spec map[string]any) { spec["items"] = nil }, decodes: true},
		"a null of the first":    {change: func(spec map[string]any) { spec["maybe"] = nil }, decodes: true},
		"something below a list": {change: func(spec map[string]any) { spec["items"].([]any)[3].(map[string]any)["odd"] = 1 }, decodes: true},
	} {
		item := storedObject(t, 7, c.change)
		if got := stored.isNormal(item.JSON); got != (string(view.converter.normalizeStored(item.JSON)) == string(item.JSON)) {
			t.Errorf("%s: is normal: %v", name, got)
		}
		_, quick := view.renameEncoded(item.JSON)
		if quick == c.decodes {
			t.Errorf("%s: without decoding: %v", name, quick)
		}
		slow := []registry.Encoded{item}
		if err := view.renameEach(slow); err != nil {
			t.Fatal(err)
		}
		got, err := view.convertAll(t.Context(), []registry.Encoded{item})
		if err != nil || !reflect.DeepEqual(content(t, got[0].JSON), content(t, slow[0].JSON)) || got[0].Revision != 7 {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got[0].JSON, slow[0].JSON)
		}
	}
}

func content(t *testing.T, text []byte) map[string]any {
	t.Helper()
	o, err := unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return o.Object
}

func BenchmarkRename(b *testing.B) {
	view, _ := renamedVersions(b)
	items := make([]registry.Encoded, 1000)
	size := 0
	for i := range items {
		items[i] = storedObject(b, i, func(map[string]any) {})
		size += len(items[i].JSON)
	}
	b.Run("list", func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := view.convertAll(b.Context(), items); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			for _, item := range items {
				view.converter.normalizeStored(item.JSON)
			}
		}
	})
	b.Run("copy", func(b *testing.B) { // the floor
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			for _, item := range items {
				_ = append([]byte(nil), item.JSON...)
			}
		}
	})
}
