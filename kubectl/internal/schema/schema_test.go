package schema

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/proto/rest"
)

const small = `{"paths":{"/x":{"patch":{"x-kubernetes-group-version-kind":{"group":"g","version":"v1","kind":"Thing"},"requestBody":{"content":{"application/strategic-merge-patch+json":{}}}}}},
"components":{"schemas":{
 "io.g.Thing":{"description":"A thing.","type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Thing"}],"required":["parts"],"properties":{
   "kind":{"type":"string","description":"What it is.","enum":["","b","c","d","e"]},
   "parts":{"type":"array","description":"Its parts.","items":{"allOf":[{"$ref":"#/components/schemas/io.g.Part"}]},"x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"},
   "self":{"$ref":"#/components/schemas/io.g.Thing"},
   "labels":{"type":"object","externalDocs":{"description":"More of it.","url":"https://example.org"},"additionalProperties":{"type":"string"}}}},
 "io.g.Other":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Other"}]},
 "io.g.Part":{"description":"A part.\nIt has a name.\n\n - listed","type":"object","properties":{"name":{"type":"string"},"size":{"type":"integer"}}}}}}`

func load(t *testing.T) *Document {
	t.Helper()
	return loadFrom(t, small)
}

func loadFrom(t *testing.T, text string) *Document {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/openapi/v3/apis/g/v1" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	document, err := Load(t.Context(), client, schema.GroupVersion{Group: "g", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), client, schema.GroupVersion{Group: "h", Version: "v1"}); err == nil || !strings.Contains(err.Error(), "h/v1") {
		t.Errorf("of a group that is not there: %v", err)
	}
	return document
}

var thing = schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Thing"}

func TestExplain(t *testing.T) {
	document := load(t)
	for path, want := range map[string]string{
		"": "GROUP:      g\nKIND:       Thing\nVERSION:    v1\n\nDESCRIPTION:\n    A thing.\n    \nFIELDS:\n  kind\t<string>\n  enum: \"\", b, c, " +
			"d, ....\n    What it is.\n\n" +
			"  labels\t<map[string]string>\n    <no description>\n\n    EXTERNAL DOCS:\n      More of it.\n      URL: https://example.org\n\n  parts\t<[]Part> " +
			"-required-\n    Its parts.\n\n  self\t<Thing>\n    <no description>\n\n\n",
		"parts": "FIELD: parts <[]Part>\n\n\nDESCRIPTION:\n    Its parts.\n    A part. It has a name.\n    \n     - listed\n    \nFIELDS:\n  name\t<string>\n    " +
			"<no description>\n\n  size\t<integer>\n    <no description>\n\n\n",
		"labels": "FIELD: labels <map[string]string>\n\n\nDESCRIPTION:\n    <empty>\n\nEXTERNAL DOCS:\n    More of it.\n    URL: https://example.org\n\n",
		"kind":   "FIELD: kind <string>\nENUM:\n    \"\"\n    b\n    c\n    d\n    e\n\nDESCRIPTION:\n    What it is.\n    \n\n",
	} {
		var out strings.Builder
		var fields []string
		if path != "" {
			fields = strings.Split(path, ".")
		}
		if err := document.Explain(&out, thing, fields, Depth{}); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %v\ngot\n%q\nwant\n%q", path, err, out.String(), want)
		}
	}
	var out strings.Builder
	if err := document.Explain(&out, thing, []string{"parts", "none"}, Depth{}); err == nil || err.Error() != `field "none" does not exist` {
		t.Errorf("a field that is not there: %v", err)
	}
	// Recursion into a type that contains itself ends.
	if err := document.Explain(&out, thing, nil, Depth{Recursive: true}); err != nil {
		t.Error(err)
	}
}

// The old format names no types, and wraps descriptions differently.
func TestExplainV2(t *testing.T) {
	document := load(t)
	for path, want := range map[string]string{
		"parts": "KIND:     Thing\nVERSION:  g/v1\n\nRESOURCE: parts <[]Object>\n\nDESCRIPTION:\n     Its parts.\n\n     A part. It has a name.\n     - " +
			"listed\n\nFIELDS:\n   name\t<string>\n\n   size\t<integer>\n\n",
		"kind": "KIND:     Thing\nVERSION:  g/v1\n\nFIELD:    kind <string>\n\nDESCRIPTION:\n     What it is.\n",
	} {
		var out strings.Builder
		if err := document.ExplainV2(&out, thing, []string{path}, Depth{}); err != nil || out.String() != want {
			t.Errorf("%s: %v\ngot\n%q\nwant\n%q", path, err, out.String(), want)
		}
	}
	var out strings.Builder
	if err := document.ExplainV2(&out, thing, nil, Depth{Recursive: true, Max: 1}); err != nil ||
		!strings.HasSuffix(out.String(), "parts\t<[]Object>\n   self\t<Object>\n") {
		t.Errorf("one level: %v\n%s", err, out.String())
	}
	if err := document.ExplainV2(&out, thing, []string{"none"}, Depth{}); err == nil || err.Error() != `field "none" does not exist` {
		t.Errorf("a field that is not there: %v", err)
	}
}

// A document whose types contain themselves, or each other three times, is
// explained in bounded time and memory.
func TestExplainWithoutEnd(t *testing.T) {
	types := []string{
		`"T":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Thing"}],"properties":{
			"list":{"$ref":"#/L"},"map":{"$ref":"#/M"},"round":{"$ref":"#/R"},"wide":{"$ref":"#/B0"},"none":null,"all":{"allOf":[null]},"lost":{"$ref":"#/Lost"}}}`,
		`"L":{"type":"array","items":{"$ref":"#/L"}}`, `"M":{"type":"object","additionalProperties":{"$ref":"#/M"}}`,
		`"R":{"description":"r","$ref":"#/R2"}`, `"R2":{"$ref":"#/R"}`, `"Lost":null`,
	}
	for i := range 40 {
		next := fmt.Sprintf(`{"$ref":"#/B%d"}`, i+1)
		types = append(types, fmt.Sprintf(`"B%d":{"type":"object","properties":{"x":%s,"y":%s,"z":%s}}`, i, next, next, next))
	}
	document := loadFrom(t, `{"components":{"schemas":{`+strings.Join(types, ",")+`}}}`)
	for _, path := range [][]string{nil, {"list"}, {"map"}, {"round"}, {"all"}, {"lost"}} {
		if err := document.Explain(io.Discard, thing, path, Depth{}); err != nil {
			t.Errorf("%v: %v", path, err)
		}
		if err := document.ExplainV2(io.Discard, thing, path, Depth{}); err != nil {
			t.Errorf("%v, v2: %v", path, err)
		}
	}
	for _, explain := range []func(io.Writer, schema.GroupVersionKind, []string, Depth) error{document.Explain, document.ExplainV2} {
		if err := explain(io.Discard, thing, nil, Depth{Recursive: true}); err == nil || !strings.Contains(err.Error(), "were cut") {
			t.Errorf("without an end: %v", err)
		}
		if err := explain(io.Discard, thing, nil, Depth{Recursive: true, Max: 3}); err != nil {
			t.Errorf("three levels: %v", err)
		}
	}
}

func TestMerging(t *testing.T) {
	document := load(t)
	if document.Merging(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Other"}) != nil {
		t.Error("a kind whose lists the server does not merge")
	}
	patch, err := strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(
		[]byte(`{"parts":[{"name":"a","size":1},{"name":"b","size":2}],"labels":{"x":"y"}}`),
		[]byte(`{"parts":[{"name":"a","size":1},{"name":"b","size":3}],"labels":{"x":"z"}}`), document.Merging(thing))
	if want := `{"$setElementOrder/parts":[{"name":"a"},{"name":"b"}],"labels":{"x":"z"},"parts":[{"name":"b","size":3}]}`; err != nil || string(patch) != want {
		t.Errorf("patch %s, %v, want %s", patch, err, want)
	}
}
