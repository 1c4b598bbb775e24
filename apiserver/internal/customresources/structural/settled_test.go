package structural

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestSettledSaysWhatDecodingWouldDo compares it with Prune, Complete and Default, for random schemas
// and objects as the encoder writes them.
func TestSettledSaysWhatDecodingWouldDo(t *testing.T) {
	counts := map[bool]int{}
	for seed := range uint64(3000) {
		made := maker{rand.New(rand.NewPCG(seed, 1))}
		props := made.object(4)
		s, err := Compile(props)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			object := made.value(props, 5).(map[string]any)
			object["apiVersion"], object["metadata"] = "c.io/v1", map[string]any{"name": "x", "odd": nil}
			changes := Changes{Prune: made.often(4), Nulls: made.often(4), Defaults: made.often(4)}
			want := unchangedBy(s, object, changes)
			encoded := mustMarshal(t, object)
			if got := s.Settled(encoded, changes); got != want {
				t.Fatalf("seed %d, %+v: settled is %v\nschema %s\nobject %s", seed, changes, got, mustMarshal(t, props), encoded)
			}
			counts[want]++
		}
	}
	if counts[true] < 5000 || counts[false] < 5000 {
		t.Errorf("the objects are too much alike: %v", counts)
	}
}

// TestSettledIsCareful: where it can't be certain, it says no.
func TestSettledIsCareful(t *testing.T) {
	s, err := Compile(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"a": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"x"`)}},
		"l": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"a":"1","kind":"C"}`:              true,
		" { \"a\" : \"1\" , \"l\" : [ ] } ": true,
		`{"a":"1","l":[{},{}]}`:             true,
		`{"a":"1","a":null}`:                false, // twice
		`{"l":[],"a":"1"}`:                  false, // in another order
		`{"\u0061":"1"}`:                    false,
		`{"a":"1","l":[{"b":1}]}`:           false,
		`{"a":"1"`:                          false,
		`{"a":"1",`:                         false,
		`{"a"`:                              false,
		`{"a":"1","l":[{}`:                  false,
		`{"a":"1","l":[`:                    false,
		`{`:                                 false,
		`[]`:                                false,
		``:                                  false,
	} {
		if got := s.Settled([]byte(text), Changes{Prune: true, Nulls: true, Defaults: true}); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if !(*Schema)(nil).Settled(nil, Changes{Prune: true}) {
		t.Error("nothing can change without a schema")
	}
}

// TestSettledMetadata: where Repair would change something, it is not settled; where it is in order, it is.
func TestSettledMetadata(t *testing.T) {
	s, err := Compile(propsOf(t,
		`{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for fields, want := range map[string]bool{
		`"annotations":{"a":"1"},"generation":1,"labels":{},"name":"x"`:                                                                                                                           true,
		`"creationTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":30,"finalizers":["a","b"],"generation":7`:                                                                        true,
		`"generation":1,"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}},"manager":"m","operation":"Update","time":"2020-01-01T00:00:00Z"}]`:                     true,
		`"generation":1,"ownerReferences":[{"apiVersion":"v1","blockOwnerDeletion":true,"controller":false,"kind":"K","name":"n","uid":"u"},{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}]`: true,
		// as storage gives it
		`"resourceVersion":"7","annotations":{"a":"1"},"generation":1,"name":"x"`: true,
		`"deletionGracePeriodSeconds":0,"generation":2`:                           true, // deleted, and held by a finalizer
		`"annotations":{"a":"1"},"generation":1,"resourceVersion":"7"`:            true,
		`"name":"x"`:     false, // without a generation
		`"generation":0`: false, `"generation":null`: false, `"generation":1.5`: false, `"deletionGracePeriodSeconds":0.5,"generation":1`: false,
		`"generation":"1"`: false, `"generation":1e30`: false,
		`"generation":1,"name":5`: false, `"generation":1,"odd":"x"`: false, `"generation":1,"labels":{"a":5}`: false, `"generation":1,"labels":["a"]`: false,
		`"generation":1,"finalizers":[5]`: false, `"generation":1,"finalizers":"x"`: false, `"creationTimestamp":"x","generation":1`: false,
		`"creationTimestamp":"2020-01-01T02:00:00+02:00","generation":1`: false, `"creationTimestamp":"2020-01-01T02:00:00.5Z","generation":1`: false,
		`"generation":1,"ownerReferences":[{"controller":"yes"}]`: false, `"generation":1,"ownerReferences":["x"]`: false,
		`"generation":1,"managedFields":[{"time":"x"}]`: false, `"generation":1,"managedFields":[{"odd":"x"}]`: false,
	} {
		embedded := fields + `,"zone":1`
		if want {
			embedded = fields
		}
		for schema, text := range map[*Schema]string{
			nil: `{"apiVersion":"v1","kind":"K","metadata":{` + fields + `}}`,
			s:   `{"e":{"apiVersion":"v1","kind":"K","metadata":{` + embedded + `}},"metadata":{"generation":1}}`,
		} {
			if got := schema.Settled([]byte(text), Changes{Metadata: true}); got != want {
				t.Errorf("%s: settled is %v", text, got)
			}
			repaired := object(t, text)
			if schema.Repair(repaired); want && !reflect.DeepEqual(repaired, object(t, strings.Replace(text, `"labels":{},`, "", 1))) ||
				!want && reflect.DeepEqual(repaired, object(t, text)) {
				t.Errorf("%s: repaired to %v", text, repaired)
			}
		}
	}
	for _, text := range []string{`{"metadata":[]}`, `{"metadata":{"resourceVersion":"7","generation":1,"resourceVersion":"8"}}`,
		`{"metadata":{"resourceVersion":"7","resourceVersion":"8","generation":1}}`,
		`{"metadata":{"generation":1,"labels":{"resourceVersion":"7","a":"1"}}}`, `{"metadata":{"generation":1`, `{"metadata":{"finalizers":["a"`,
		`{"e":{"kind":5},"metadata":{"generation":1}}`} {
		if s.Settled([]byte(text), Changes{Metadata: true}) {
			t.Errorf("%s: settled", text)
		}
	}
	for text, want := range map[string]string{
		`{"e":{"metadata":null}}`: `{"e":{"metadata":{}}}`,
		`{"e":{"metadata":[]}}`:   `{"e":{"metadata":[]}}`, // which kube-apiserver can't read
		`{"metadata":{"creationTimestamp":"2020-01-01T02:00:00.5+02:00","generation":1}}`: `{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z","generation":1}}`,
	} {
		repaired := object(t, text)
		if s.Repair(repaired); !reflect.DeepEqual(repaired, object(t, want)) {
			t.Errorf("%s: repaired to %v", text, repaired)
		}
	}
}

func unchangedBy(s *Schema, object map[string]any, changes Changes) bool {
	pruned, completed, defaulted := copyValue(object).(map[string]any), copyValue(object), copyValue(object)
	s.Prune(pruned, false)
	s.Complete(completed)
	s.Default(defaulted)
	return (!changes.Prune || reflect.DeepEqual(pruned, object)) && (!changes.Nulls || keepsNulls(object, completed)) &&
		(!changes.Defaults || reflect.DeepEqual(defaulted, object))
}

// keepsNulls reports whether the nulls of before are those of after, too.
func keepsNulls(before, after any) bool {
	switch b := before.(type) {
	case map[string]any:
		a := after.(map[string]any)
		for name, value := range b {
			if now, has := a[name]; !has || !keepsNulls(value, now) {
				return false
			}
		}
	case []any:
		for i, value := range b {
			if !keepsNulls(value, after.([]any)[i]) {
				return false
			}
		}
	case nil:
		return after == nil
	}
	return true
}

func mustMarshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// maker makes schemas, and objects that mostly follow them.
type maker struct{ *rand.Rand }

func (m maker) often(n int) bool { return m.IntN(n) > 0 }
func (m maker) once(n int) bool  { return m.IntN(n) == 0 }

func (m maker) schema(depth int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: "string"}
	switch kind := m.IntN(4); {
	case depth > 0 && kind < 2:
		s = m.object(depth - 1)
	case depth > 0 && kind == 2:
		s = &apiextensionsv1.JSONSchemaProps{Type: "array"}
		if m.often(6) {
			s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: m.schema(depth - 1)}
		}
	}
	s.Nullable = m.once(4)
	if m.once(8) {
		s.Default = &apiextensionsv1.JSON{Raw: []byte(map[string]string{"string": `"d"`, "array": `[]`, "object": `{}`}[s.Type])}
	}
	if m.once(8) {
		s.XPreserveUnknownFields = new(true)
	}
	return s
}

func (m maker) object(depth int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: "object", XEmbeddedResource: m.once(8)}
	switch m.IntN(6) {
	case 0:
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}
	case 1:
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: m.schema(depth - 1)}
	default:
		s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for i := range m.IntN(4) {
			s.Properties[fmt.Sprint("p", i)] = *m.schema(depth - 1)
		}
		if m.once(4) {
			s.Properties["metadata"] = *m.schema(depth - 1)
		}
	}
	return s
}

func (m maker) value(s *apiextensionsv1.JSONSchemaProps, depth int) any {
	switch {
	case s.Type == "array":
		list := []any{}
		for range m.IntN(3) {
			items := &apiextensionsv1.JSONSchemaProps{Type: "string"}
			if s.Items != nil {
				items = s.Items.Schema
			} else if m.once(4) {
				items.Type = "object"
			}
			list = append(list, m.maybe(items, depth-1))
		}
		return list
	case s.Type == "object":
		out := map[string]any{}
		for name, property := range s.Properties {
			if property.Default != nil && m.often(10) || property.Default == nil && m.often(3) {
				out[name] = m.maybe(&property, depth-1)
			}
		}
		if a := s.AdditionalProperties; a != nil || m.once(12) {
			below := &apiextensionsv1.JSONSchemaProps{Type: "string"}
			if a != nil && a.Schema != nil {
				below = a.Schema
			}
			out["x"] = m.maybe(below, depth-1)
		}
		if s.XEmbeddedResource {
			out["kind"] = "K"
		}
		return out
	}
	return strings.Repeat(`t"<\`, m.IntN(3))
}

func (m maker) maybe(s *apiextensionsv1.JSONSchemaProps, depth int) any {
	if m.once(20) || depth < 0 {
		return nil
	}
	return m.value(s, depth)
}
