package openapi

import (
	"encoding/json"
	"reflect"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

var far = runtimeschema.GroupVersion{Group: "far.example.com", Version: "v1"}

func TestLocate(t *testing.T) {
	for index, want := range map[string]string{
		`{"paths": {"apis/far.example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/far.example.com/v1?hash=AB%26C"}}}`: "/openapi/v3/apis/far.example.com/v1?hash=AB%26C",
		`{"paths": {"apis/far.example.com/v1": {"serverRelativeURL": "https://elsewhere/x?hash=A"}}}`:                      "/openapi/v3/apis/far.example.com/v1?hash=A",
		`{"paths": {"apis/far.example.com/v1": {}}}`:                                                                       "/openapi/v3/apis/far.example.com/v1",
		`{"paths": {"apis/near.example.com/v1": {}}}`:                                                                      "",
		`{"paths": {"apis/far.example.com/v1": {"serverRelativeURL": ":"}}}`:                                               "error",
		`[]`: "error",
	} {
		got, err := Locate([]byte(index), far)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", index, got, want)
		}
	}
}

// TestAdopt: only the group's part is merged, with what it refers to. Existing
// definitions stay; those with a name that is taken are renamed, in references,
// too.
func TestAdopt(t *testing.T) {
	const theirs = `{
		"parameters": {"pretty": {"name": "pretty", "in": "query", "type": "string"}, "agent": {"name": "agent", "in": "header", "type": "string"}},
		"paths": {
			"/apis/far.example.com/v1/things": {
				"parameters": [{"$ref": "#/parameters/pretty"}, {"$ref": "#/parameters/agent"}, {"$ref": "#/parameters/none"}, 7],
				"get": {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}}, "parameters": [{"in": "formData"}]}
			},
			"/apis/far.example.com/v10/things": {}, "/api/v1/pods": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Intruder"}}}}}
		},
		"definitions": {
			"Thing": {"properties": {"a": {"$ref": "#/definitions/Meta"}, "b": {"$ref": "#/definitions/Same"}, "c": {"$ref": "#/definitions/Missing"}}},
			"Meta": {"type": "object", "properties": {"self": {"$ref": "#/definitions/Meta"}}}, "Same": {"type": "string"}, "Intruder": {"type": "string"}
		}
	}`
	extracted, err := Extract([]byte(theirs), far)
	if err != nil {
		t.Fatal(err)
	}
	document := map[string]any{
		"paths":       map[string]any{"/api/v1/pods": map[string]any{}},
		"definitions": map[string]any{"Meta": map[string]any{"type": "object", "required": []string{"x"}}, "Same": map[string]any{"type": "string"}},
	}
	if err := mergeRemote(document, extracted); err != nil {
		t.Fatal(err)
	}
	const want = `{
		"paths": {
			"/api/v1/pods": {},
			"/apis/far.example.com/v1/things": {
				"parameters": [{"name": "pretty", "in": "query", "type": "string"}],
				"get": {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Thing"}}}, "parameters": []}
			}
		},
		"definitions": {
			"Meta": {"type": "object", "required": ["x"]}, "Same": {"type": "string"},
			"Meta_v2": {"type": "object", "properties": {"self": {"$ref": "#/definitions/Meta_v2"}}},
			"Thing": {"properties": {"a": {"$ref": "#/definitions/Meta_v2"}, "b": {"$ref": "#/definitions/Same"}, "c": {}}}
		}
	}`
	if got := again(t, document); !reflect.DeepEqual(got, again(t, json.RawMessage(want))) {
		text, _ := json.Marshal(got)
		t.Errorf("%s", text)
	}
	if _, err := documentMessage(document); err != nil {
		t.Errorf("as protobuf: %v", err)
	}
	for _, hostile := range []string{"", "[]", `"x"`, `{"paths": [], "definitions": 7}`, `{"paths": {"/apis/far.example.com/v1/x": 7}}`,
		`{"paths": {"/apis/far.example.com/v1/x": {"get": [], "parameters": {}}}}`} {
		extracted, err := Extract([]byte(hostile), far)
		if err != nil {
			continue
		}
		if err := mergeRemote(document, extracted); err != nil {
			t.Errorf("%s: %v", hostile, err)
		}
		if _, err := documentMessage(document); err != nil {
			t.Errorf("%s as protobuf: %v", hostile, err)
		}
	}
}

func again(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
