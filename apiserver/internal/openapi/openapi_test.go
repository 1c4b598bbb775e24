package openapi

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// resource has as much of a resource as a document needs.
type resource struct {
	registry.Resource
	info registry.Info
	make func() core.Object
}

func (r resource) Info() registry.Info { return r.info }
func (r resource) New() core.Object    { return r.make() }

func entries() []registry.Served {
	return []registry.Served{
		{
			Resource: resource{
				info: registry.Info{Resource: core.Pods, Singular: "pod", HasStatus: true, Subresources: []string{"ephemeralcontainers"}},
				make: func() core.Object { return new(core.Pod) },
			},
			Subresources: []registry.Subresource{
				{
					Name: "eviction", Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), New: func() runtime.Object { return new(policyv1.Eviction) },
					Create: func(context.Context, string, string, runtime.Object, *metav1.CreateOptions) (runtime.Object, error) {
						return nil, nil
					},
				},
			},
		},
		{Resource: resource{info: registry.Info{Resource: core.Nodes, HasStatus: true}, make: func() core.Object { return new(core.Node) }}},
		{Resource: resource{info: registry.Info{Resource: core.Leases}, make: func() core.Object { return new(core.Lease) }}},
	}
}

func get(t *testing.T, h *Handler, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if err := h.Serve(w, r); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return w.Result()
}

func body(t *testing.T, from io.Reader) []byte {
	t.Helper()
	data, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decoded(t *testing.T, answer *http.Response) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(body(t, answer.Body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// at walks down a document.
func at(t *testing.T, doc any, path ...string) any {
	t.Helper()
	for i, key := range path {
		next, ok := doc.(map[string]any)[key]
		if !ok {
			t.Fatalf("nothing at %s", strings.Join(path[:i+1], " > "))
		}
		doc = next
	}
	return doc
}

func TestV2(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	doc := decoded(t, get(t, h, "/openapi/v2"))
	container := at(t, doc, "definitions", "io.k8s.api.core.v1.Container", "properties")
	for path, want := range map[string]any{
		"name/type":                          "string",
		"resources/$ref":                     "#/definitions/io.k8s.api.core.v1.ResourceRequirements",
		"ports/x-kubernetes-patch-strategy":  "merge",
		"ports/x-kubernetes-patch-merge-key": "containerPort",
		"ports/items/$ref":                   "#/definitions/io.k8s.api.core.v1.ContainerPort",
		"command/items/type":                 "string",
	} {
		if got := at(t, container, strings.Split(path, "/")...); got != want {
			t.Errorf("Container.%s is %v, want %v", path, got, want)
		}
	}
	for name, want := range map[string]string{
		"io.k8s.apimachinery.pkg.util.intstr.IntOrString": `{"format":"int-or-string","type":"string"}`,
		"io.k8s.apimachinery.pkg.apis.meta.v1.Time":       `{"format":"date-time","type":"string"}`,
		"io.k8s.apimachinery.pkg.api.resource.Quantity":   `{"type":"string"}`,
	} {
		definition := at(t, doc, "definitions", name).(map[string]any)
		delete(definition, "description")
		if got, _ := json.Marshal(definition); string(got) != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	required := at(t, doc, "definitions", "io.k8s.api.core.v1.PodSpec", "required")
	if got, _ := json.Marshal(required); string(got) != `["containers"]` {
		t.Errorf("PodSpec requires %s", got)
	}
	kinds, _ := json.Marshal(at(t, doc, "definitions", "io.k8s.api.core.v1.Pod", "x-kubernetes-group-version-kind"))
	if string(kinds) != `[{"group":"","kind":"Pod","version":"v1"}]` {
		t.Errorf("Pod is the type of %s", kinds)
	}
	at(t, doc, "paths", "/apis/authentication.k8s.io/v1/tokenreviews", "post")
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/namespaces/{namespace}/pods", "/api/v1/namespaces/{namespace}/pods/{name}",
		"/api/v1/namespaces/{namespace}/pods/{name}/status", "/api/v1/namespaces/{namespace}/pods/{name}/ephemeralcontainers",
		"/api/v1/nodes/{name}", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}",
	} {
		at(t, doc, "paths", path, "get")
	}
}

// TestReferences: every reference in a document can be resolved.
func TestReferences(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	index := decoded(t, get(t, h, "/openapi/v3"))
	for name, group := range at(t, index, "paths").(map[string]any) {
		doc := decoded(t, get(t, h, group.(map[string]any)["serverRelativeURL"].(string)))
		schemas := at(t, doc, "components", "schemas").(map[string]any)
		visitReferences(doc, func(ref string) {
			if _, ok := schemas[strings.TrimPrefix(ref, "#/components/schemas/")]; !ok {
				t.Errorf("%s refers to %s, which is not there", name, ref)
			}
		})
	}
	doc := decoded(t, get(t, h, "/openapi/v2"))
	all := at(t, doc, "definitions").(map[string]any)
	visitReferences(doc, func(ref string) {
		if _, ok := all[strings.TrimPrefix(ref, "#/definitions/")]; !ok {
			t.Errorf("v2 refers to %s, which is not there", ref)
		}
	})
}

func visitReferences(v any, visit func(ref string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if ref, ok := value.(string); ok && key == "$ref" {
				visit(ref)
			}
			visitReferences(value, visit)
		}
	case []any:
		for _, value := range v {
			visitReferences(value, visit)
		}
	}
}

// TestProtobuf decodes the message with the package that clients use.
func TestProtobuf(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	answer := get(t, h, "/openapi/v2", "Accept", protobufTypeV2)
	if got := answer.Header.Get("Content-Type"); got != protobufTypeV2Proper {
		t.Errorf("Content-Type is %q", got)
	}
	doc := new(openapi_v2.Document)
	if err := proto.Unmarshal(body(t, answer.Body), doc); err != nil {
		t.Fatal(err)
	}
	want := decoded(t, get(t, h, "/openapi/v2", "Accept", "application/json"))
	if got := len(doc.GetDefinitions().GetAdditionalProperties()); got != len(want["definitions"].(map[string]any)) {
		t.Errorf("%d definitions in protobuf, %d in JSON", got, len(want["definitions"].(map[string]any)))
	}
	back := readBack(t, doc)
	for _, part := range []string{"definitions", "paths", "securityDefinitions"} {
		compareParts(t, part, back[part], want[part])
	}
	if needed := doc.GetSecurity(); len(needed) != 1 || needed[0].GetAdditionalProperties()[0].GetName() != "BearerToken" {
		t.Errorf("requests need %v", needed)
	}
}

// readBack converts a message to JSON.
func readBack(t *testing.T, doc interface{ YAMLValue(string) ([]byte, error) }) map[string]any {
	t.Helper()
	back := map[string]any{}
	text, err := doc.YAMLValue("")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// compareParts compares, part by part, what was decoded with what was encoded.
func compareParts(t *testing.T, what string, back, want any) {
	t.Helper()
	parts, _ := back.(map[string]any)
	if len(parts) != len(want.(map[string]any)) {
		t.Errorf("%s: %d of %d", what, len(parts), len(want.(map[string]any)))
	}
	for name, wanted := range want.(map[string]any) {
		got, _ := json.Marshal(parts[name])
		withoutObjects(wanted)
		expected, _ := json.Marshal(wanted)
		if string(got) != string(expected) {
			t.Errorf("%s %s\n     got %s\n    want %s", what, name, got, expected)
		}
	}
}

// withoutObjects removes defaults that are objects: the v3 messages can't
// express them.
func withoutObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, object := v["default"].(map[string]any); object && (v["allOf"] != nil || v["$ref"] != nil) {
			delete(v, "default")
		}
		for _, inner := range v {
			withoutObjects(inner)
		}
	case []any:
		for _, inner := range v {
			withoutObjects(inner)
		}
	}
}

// TestThirdInProtobuf: a document that is kept as JSON is served as protobuf on
// request, under the same hash.
func TestThirdInProtobuf(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	plain := get(t, h, "/openapi/v3/api/v1")
	want := decoded(t, plain)
	for _, asked := range []string{protobufTypeV3, protobufTypeV3Proper + ", application/json"} {
		answer := get(t, h, "/openapi/v3/api/v1", "Accept", asked)
		if got := answer.Header.Get("Content-Type"); got != protobufTypeV3Proper {
			t.Errorf("Content-Type is %q", got)
		}
		if answer.Header.Get("ETag") != plain.Header.Get("ETag") {
			t.Error("another hash")
		}
		doc := new(openapi_v3.Document)
		if err := proto.Unmarshal(body(t, answer.Body), doc); err != nil {
			t.Fatal(err)
		}
		back := readBack(t, doc)
		compareParts(t, "paths", back["paths"], want["paths"])
		for _, part := range []string{"schemas", "securitySchemes"} {
			compareParts(t, part, at(t, back, "components", part), at(t, want, "components", part))
		}
	}
	if len(h.protobufGroups) != 1 {
		t.Errorf("%d are kept", len(h.protobufGroups))
	}
}

// TestSchemaInProtobuf: custom resources use parts of the schema that built-in
// ones never use.
func TestSchemaInProtobuf(t *testing.T) {
	const schema = `{"type": "object", "nullable": true, "maxProperties": 3, "properties": {
		"n": {"type": "integer", "minimum": -1.5, "maximum": 9, "exclusiveMaximum": true, "multipleOf": 3, "default": 3},
		"s": {"type": "string", "pattern": "^a$", "maxLength": 3, "minLength": 1, "enum": ["a", 1, null], "default": "x", "title": "S"},
		"l": {"type": "array", "maxItems": 3, "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/components/schemas/x"}},
		"b": {"default": true, "not": {"type": "string"}, "anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/x"}], "oneOf": [{"format": "x"}]},
		"m": {"additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
		"open": {"additionalProperties": true}}}`
	var want map[string]any
	if err := json.Unmarshal([]byte(schema), &want); err != nil {
		t.Fatal(err)
	}
	message, err := plainSchemaMessageV3(want)
	if err != nil {
		t.Fatal(err)
	}
	read := new(openapi_v3.Schema)
	if err := proto.Unmarshal(message, read); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := read.ToRawInfo().Decode(&back); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(back)
	expected, _ := json.Marshal(want)
	if string(text) != string(expected) {
		t.Errorf("got  %s\nwant %s", text, expected)
	}
}

// TestPatchParameters: clients learn from a kind's patch operation what the
// server supports.
func TestPatchParameters(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	doc := decoded(t, get(t, h, "/openapi/v3/api/v1"))
	patch := at(t, doc, "paths", "/api/v1/namespaces/{namespace}/pods/{name}", "patch")
	if kind, _ := json.Marshal(at(t, patch, "x-kubernetes-group-version-kind")); string(kind) != `{"group":"","kind":"Pod","version":"v1"}` {
		t.Errorf("patch is of %s", kind)
	}
	var names []string
	for _, p := range at(t, patch, "parameters").([]any) {
		names = append(names, p.(map[string]any)["name"].(string))
	}
	for _, want := range []string{"dryRun", "fieldManager", "fieldValidation"} {
		if !slices.Contains(names, want) {
			t.Errorf("patch has no parameter %s: %v", want, names)
		}
	}
}

func TestTransport(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	zipped := get(t, h, "/openapi/v3/api/v1", "Accept-Encoding", "gzip")
	if zipped.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal("not compressed for a client that asks for it")
	}
	reader, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	plain := get(t, h, "/openapi/v3/api/v1")
	if string(body(t, reader)) != string(body(t, plain.Body)) {
		t.Error("compressed and plain answers differ")
	}
	if again := get(t, h, "/openapi/v3/api/v1", "If-None-Match", plain.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("same ETag answers %d", again.StatusCode)
	}
	if old := get(t, h, "/openapi/v3/api/v1?hash=OLD"); old.StatusCode != http.StatusMovedPermanently {
		t.Errorf("an old hash answers %d", old.StatusCode)
	}
	for path, code := range map[string]int{"/openapi/v3/apis/none/v1": http.StatusNotFound, "/openapi/v1": http.StatusNotFound} {
		answersNothing(t, h, path, "*/*", code)
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/api/v1"} {
		answersNothing(t, h, path, "text/html", http.StatusNotAcceptable)
	}
}

// answersNothing checks that a request is answered with a code alone.
func answersNothing(t *testing.T, h *Handler, path, accept string, code int) {
	t.Helper()
	request, answer := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	request.Header.Set("Accept", accept)
	if err := h.Serve(answer, request); err != nil || answer.Code != code || answer.Body.Len() > 0 {
		t.Errorf("%s as %s answers %d %q and returns %v, want %d", path, accept, answer.Code, answer.Body.String(), err, code)
	}
}
