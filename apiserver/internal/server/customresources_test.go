package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// custom is a cluster whose custom resources are tested.
type custom struct {
	*cluster
	t *testing.T
}

// call sends JSON, or a patch, and returns the answer's code and content.
func (c *custom) call(method, path string, body any, header ...string) (int, map[string]any, http.Header) {
	c.t.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			c.t.Fatal(err)
		}
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	answer, content := c.ask(method, path, h, text)
	var into map[string]any
	_ = json.Unmarshal(content, &into)
	return answer.StatusCode, into, answer.Header
}

func (c *custom) want(code int, method, path string, body any, header ...string) map[string]any {
	c.t.Helper()
	got, content, _ := c.call(method, path, body, header...)
	if got != code {
		c.t.Fatalf("%s %s: %d instead of %d: %v", method, path, got, code, content)
	}
	return content
}

// merge is the header of a merge patch.
var merge = []string{"Content-Type", "application/merge-patch+json"}

// widgets is a definition with two versions.
func widgets(group string, change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	schema := func(text string) *apiextensionsv1.CustomResourceValidation {
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := json.Unmarshal([]byte(text), props); err != nil {
			panic(err)
		}
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props}
	}
	d := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget", ShortNames: []string{"wd"}, Categories: []string{"all"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: schema(`{"type":"object","description":"a widget","properties":{
					"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1,"default":3},"color":{"type":"string"},"note":{"type":"string","nullable":true}}},
					"status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}}`),
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Size", Type: "integer", JSONPath: ".spec.size"}},
				SelectableFields:         []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}},
			}, {
				Name: "v2beta1", Served: true, Deprecated: true,
				Schema: schema(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`),
			}},
		},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

// define makes a definition and waits until it is established.
func (c *custom) define(d *apiextensionsv1.CustomResourceDefinition) {
	c.t.Helper()
	c.want(http.StatusCreated, "POST", definitionsPath, d)
	c.until(d.Name+" is established", func(context.Context) bool { return c.condition(d.Name, "Established") == "True" })
}

func (c *custom) condition(name, kind string) string {
	_, got, _ := c.call("GET", definitionsPath+"/"+name, nil)
	conditions, _, _ := unstructured.NestedSlice(got, "status", "conditions")
	for _, one := range conditions {
		if m := one.(map[string]any); m["type"] == kind {
			return m["status"].(string)
		}
	}
	return ""
}

func widget(apiVersion, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"Widget","metadata":{"name":%q},"spec":%s}`, apiVersion, name, spec)
}

// TestCustomResources: everything that custom resources are, on one server.
func TestCustomResources(t *testing.T) {
	cluster := start(t)
	for name, test := range map[string]func(c *custom){
		"objects": (*custom).objects, "versions": (*custom).versions, "names": (*custom).names, "documents": (*custom).documents,
		"house": (*custom).house, "end": (*custom).end, "change": (*custom).change, "conversion": (*custom).conversion,
		"rules": (*custom).rules, "apply": (*custom).apply, "scale": (*custom).scale,
		"hostile": (*custom).hostile, "many": (*custom).many, "webhook": (*custom).webhook, "selected": (*custom).selected,
	} {
		t.Run(name, func(t *testing.T) { test(&custom{cluster, t}) })
	}
}

// objects: one object's life, from defaults to deletion.
func (c *custom) objects() {
	const group, path = "objects.test", "/apis/objects.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	made := c.want(201, "POST", path, widget(group+"/v1", "a", `{"color":"red","odd":1}`))
	if size, _, _ := unstructured.NestedInt64(toInts(made), "spec", "size"); size != 3 {
		c.t.Errorf("not defaulted: %v", made)
	}
	if _, odd, _ := unstructured.NestedFieldNoCopy(made, "spec", "odd"); odd {
		c.t.Error("an unknown field was kept")
	}
	_, _, header := c.call("PATCH", path+"/a", `{"spec":{"odd":1}}`, append(merge, "X", "")...)
	if !slices.Contains(header.Values("Warning"), `299 - "unknown field \"spec.odd\""`) {
		c.t.Errorf("warnings %q", header.Values("Warning"))
	}
	c.want(422, "POST", path, widget(group+"/v1", "b", `{"size":0}`))
	c.want(400, "POST", path+"?fieldValidation=Strict", widget(group+"/v1", "b", `{"odd":0}`))
	c.want(400, "POST", path, widget(group+"/v9", "b", `{}`))
	c.want(415, "PATCH", path+"/a", `{}`, "Content-Type", "application/strategic-merge-patch+json")
	c.want(406, "GET", path+"/a", nil, "Accept", "application/vnd.kubernetes.protobuf")

	generation := func(o map[string]any) string { return fmt.Sprint(o["metadata"].(map[string]any)["generation"]) }
	changed := c.want(200, "PATCH", path+"/a", `[{"op":"add","path":"/spec/size","value":5}]`, "Content-Type", "application/json-patch+json")
	if generation(changed) != "2" {
		c.t.Errorf("generation is %s after a change", generation(changed))
	}
	status := c.want(200, "PATCH", path+"/a/status", `{"spec":{"size":9},"status":{"ready":true}}`, merge...)
	if spec := status["spec"].(map[string]any); spec["size"] != 5.0 || generation(status) != "2" {
		c.t.Errorf("/status changed %v", status)
	}
	if after := c.want(200, "PATCH", path+"/a", `{"status":{"ready":false}}`, merge...); after["status"].(map[string]any)["ready"] != true {
		c.t.Error("the status was changed beside /status")
	}
	table := c.want(200, "GET", path, nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	rows, _, _ := unstructured.NestedSlice(table, "rows")
	if len(rows) != 1 || fmt.Sprint(rows[0].(map[string]any)["cells"]) != "[a 5]" {
		c.t.Errorf("rows %v", rows)
	}
	c.want(201, "POST", path, widget(group+"/v1", "b", `{"color":"blue"}`))
	list := c.want(200, "GET", path+"?fieldSelector=spec.color=blue", nil)
	if items := list["items"].([]any); len(items) != 1 {
		c.t.Errorf("%d objects are blue", len(items))
	}
	c.want(400, "GET", path+"?fieldSelector=spec.size=5", nil)
	c.want(200, "DELETE", path+"/a", nil)
	c.want(200, "DELETE", path, nil)
	c.want(404, "GET", path+"/b", nil)
	c.want(404, "GET", path+"/b/scale", nil)
	c.want(405, "POST", path+"/b", `{}`)
	stored, err := c.server.backend.storage.Get(c.t.Context(), "/registry/"+group+"/widgets/default/a")
	if err == nil {
		c.t.Errorf("still stored: %s", stored.Value)
	}
}

func toInts(o map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(o)
	if spec, ok := out["spec"].(map[string]any); ok {
		if size, ok := spec["size"].(float64); ok {
			spec["size"] = int64(size)
		}
	}
	return out
}

// versions: an object is the same in all of them, wherever it was stored.
func (c *custom) versions() {
	const group = "versions.test"
	c.define(widgets(group))
	path := func(version string) string { return "/apis/" + group + "/" + version + "/namespaces/default/widgets" }
	c.want(201, "POST", path("v1"), widget(group+"/v1", "a", `{"color":"red"}`))
	code, got, header := c.call("GET", path("v2beta1")+"/a", nil)
	if code != 200 || got["apiVersion"] != group+"/v2beta1" || got["spec"].(map[string]any)["color"] != "red" {
		c.t.Errorf("in the other version: %d %v", code, got)
	}
	if w := header.Get("Warning"); w != `299 - "versions.test/v2beta1 Widget is deprecated"` {
		c.t.Errorf("warning %q", w)
	}
	c.want(201, "POST", path("v2beta1"), widget(group+"/v2beta1", "b", `{"color":"blue","odd":1}`))
	stored, err := c.server.backend.storage.Get(c.t.Context(), "/registry/"+group+"/widgets/default/b")
	if err != nil || !strings.Contains(string(stored.Value), group+`/v1"`) || strings.Contains(string(stored.Value), `"odd":`) {
		c.t.Errorf("stored as %s, %v", stored.Value, err)
	}
	events := c.watch(path("v2beta1") + "?watch=1&resourceVersion=0")
	defer events.Close()
	for range 2 {
		if e := events.next(); e.Type != "ADDED" || e.Object["apiVersion"] != group+"/v2beta1" {
			c.t.Errorf("event %v", e)
		}
	}
	// Another version is stored from now on; what is stored stays readable.
	other := `{"spec":{"versions":%s}}`
	versions := widgets(group).Spec.Versions
	versions[0].Storage, versions[1].Storage = false, true
	text, err := json.Marshal(versions)
	c.must(err)
	c.want(200, "PATCH", definitionsPath+"/widgets."+group, fmt.Sprintf(other, text), merge...)
	if e := events.next(); e != nil {
		c.t.Errorf("a watch went on over a change of the definition: %v", e)
	}
	if list := c.want(200, "GET", path("v1"), nil); len(list["items"].([]any)) != 2 {
		c.t.Errorf("after the change: %v", list)
	}
	c.want(200, "PATCH", path("v1")+"/a", `{"spec":{"color":"green"}}`, merge...)
	stored, err = c.server.backend.storage.Get(c.t.Context(), "/registry/"+group+"/widgets/default/a")
	if err != nil || !strings.Contains(string(stored.Value), group+`/v2beta1"`) {
		c.t.Errorf("stored as %s, %v", stored.Value, err)
	}
	c.want(422, "PATCH", definitionsPath+"/widgets."+group, `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, merge...)
}

// change: a new default counts for what is stored already.
func (c *custom) change() {
	const group, path = "change.test", "/apis/change.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{"color":"red"}`))
	versions := widgets(group).Spec.Versions
	spec := versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["weight"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("7")}}
	delete(spec.Properties, "color")
	versions[0].SelectableFields = nil
	text, err := json.Marshal(versions)
	c.must(err)
	c.want(200, "PATCH", definitionsPath+"/widgets."+group, `{"spec":{"versions":`+string(text)+`}}`, merge...)
	got := c.want(200, "GET", path+"/a", nil)["spec"].(map[string]any)
	if got["weight"] != 7.0 || got["color"] != nil {
		c.t.Errorf("stored before the schema: %v", got)
	}
}

// names: what others have is not accepted, until they let it go.
func (c *custom) names() {
	const group = "names.test"
	c.define(widgets(group))
	second := widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Name, d.Spec.Names.Plural = "gadgets."+group, "gadgets"
		d.Spec.Names.Kind = "Gadget"
	})
	c.want(201, "POST", definitionsPath, second)
	c.until("the conflict is told", func(context.Context) bool { return c.condition(second.Name, "NamesAccepted") == "False" })
	if established := c.condition(second.Name, "Established"); established != "False" {
		c.t.Errorf("established: %s", established)
	}
	c.want(404, "GET", "/apis/"+group+"/v1/gadgets", nil)
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	c.until("the name is free", func(context.Context) bool { return c.condition(second.Name, "Established") == "True" })
	c.want(200, "GET", "/apis/"+group+"/v1/gadgets", nil)
}

// documents: discovery and OpenAPI tell of a resource as soon as it is there.
func (c *custom) documents() {
	const group = "documents.test"
	c.want(404, "GET", "/apis/"+group, nil)
	before := c.want(200, "GET", "/openapi/v3", nil)["paths"].(map[string]any)
	c.define(widgets(group))
	list := c.want(200, "GET", "/apis/"+group+"/v1", nil)
	text, err := json.Marshal(list)
	c.must(err)
	for _, want := range []string{`"shortNames":["wd"]`, `"widgets/status"`, `"categories":["all"]`} {
		if !strings.Contains(string(text), want) {
			c.t.Errorf("%s lacks %s", text, want)
		}
	}
	together := c.want(200, "GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if text, err = json.Marshal(together); err != nil || !strings.Contains(string(text), `"name":"documents.test"`) {
		c.t.Errorf("not in the aggregated document: %v", err)
	}
	paths := c.want(200, "GET", "/openapi/v3", nil)["paths"].(map[string]any)
	entry, ok := paths["apis/"+group+"/v1"].(map[string]any)
	if !ok {
		c.t.Fatalf("OpenAPI lists %d documents and lacks it", len(paths))
	}
	if before["api/v1"].(map[string]any)["serverRelativeURL"] != paths["api/v1"].(map[string]any)["serverRelativeURL"] {
		c.t.Error("other documents changed")
	}
	document := c.want(200, "GET", entry["serverRelativeURL"].(string), nil)
	described, _, _ := unstructured.NestedFieldNoCopy(document, "components", "schemas", "test.documents.v1.Widget", "properties", "spec", "properties", "size", "minimum")
	if described != 1.0 {
		c.t.Errorf("minimum is %v", described)
	}
	second := c.want(200, "GET", "/openapi/v2", nil)
	definitions := second["definitions"].(map[string]any)
	if _, ok := definitions["test.documents.v1.WidgetList"]; !ok {
		c.t.Error("the list is not in v2")
	}
	// What takes anything says nothing there, or clients would refuse it.
	free := definitions["test.documents.v2beta1.Widget"].(map[string]any)
	if free["type"] != "object" || free["properties"] != nil || free["x-kubernetes-preserve-unknown-fields"] != nil {
		c.t.Errorf("v2 says of what takes anything: %v", free)
	}
}

// house: namespaces and owners take custom resources along.
func (c *custom) house() {
	const group, path = "house.test", "/apis/house.test/v1/namespaces/"
	c.define(widgets(group))
	c.namespace("crowded")
	c.want(201, "POST", path+"crowded/widgets", widget(group+"/v1", "a", `{}`))
	owner := c.want(201, "POST", path+"default/widgets", widget(group+"/v1", "owner", `{}`))
	uid := owner["metadata"].(map[string]any)["uid"]
	child := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child","ownerReferences":[{"apiVersion":%q,"kind":"Widget","name":"owner","uid":%q}]}}`, group+"/v1", uid)
	c.want(201, "POST", "/api/v1/namespaces/default/configmaps", child)
	c.want(200, "DELETE", "/api/v1/namespaces/crowded", nil)
	c.until("the namespace is gone", func(context.Context) bool {
		code, _, _ := c.call("GET", "/api/v1/namespaces/crowded", nil)
		return code == 404
	})
	if list := c.want(200, "GET", "/apis/house.test/v1/widgets", nil); len(list["items"].([]any)) != 1 {
		c.t.Errorf("left: %v", list)
	}
	c.want(200, "GET", "/api/v1/namespaces/default/configmaps/child", nil)
	// With the definition goes the owner, and with it what it owned.
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	c.until("the dependent is gone", func(context.Context) bool {
		code, _, _ := c.call("GET", "/api/v1/namespaces/default/configmaps/child", nil)
		return code == 404
	})
}

// end: a definition goes when its last object has gone; nothing new comes
// meanwhile, and its watches end.
func (c *custom) end() {
	const group, path = "end.test", "/apis/end.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	held := strings.Replace(widget(group+"/v1", "a", `{}`), `"name":"a"`, `"name":"a","finalizers":["x.test/hold"]`, 1)
	c.want(201, "POST", path, held)
	events := c.watch(path + "?watch=1")
	defer events.Close()
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	c.want(403, "POST", path, widget(group+"/v1", "b", `{}`))
	c.until("the object is asked to go", func(context.Context) bool {
		return c.want(200, "GET", path+"/a", nil)["metadata"].(map[string]any)["deletionTimestamp"] != nil
	})
	c.want(200, "PATCH", path+"/a", `{"metadata":{"finalizers":null}}`, merge...)
	c.until("the definition is gone", func(context.Context) bool {
		code, _, _ := c.call("GET", definitionsPath+"/widgets."+group, nil)
		return code == 404
	})
	last := ""
	for e := events.next(); e != nil; e = events.next() {
		last = e.Type
	}
	if last != "DELETED" {
		c.t.Errorf("the watch ended after %q", last)
	}
	c.want(404, "GET", path, nil)
	c.want(404, "GET", "/apis/"+group, nil)
}

// conversion: a webhook says what an object is in another version.
func (c *custom) conversion() {
	var calls atomic.Int64
	var broken atomic.Bool
	hook := c.converting(func(all []*unstructured.Unstructured) {
		calls.Add(1)
		for _, o := range all {
			o.SetLabels(map[string]string{"converted": "yes"})
			if broken.Load() {
				o.SetName("another")
			}
		}
	})
	const group = "conversion.test"
	c.define(widgets(group, hook))
	path := func(version string) string { return "/apis/" + group + "/" + version + "/namespaces/default/widgets" }
	for _, name := range []string{"a", "b", "c"} {
		c.want(201, "POST", path("v1"), widget(group+"/v1", name, `{}`))
	}
	if calls.Load() != 0 {
		c.t.Error("the webhook was asked for what is in the version it is stored in")
	}
	list := c.want(200, "GET", path("v2beta1"), nil)
	first := list["items"].([]any)[0].(map[string]any)
	if len(list["items"].([]any)) != 3 || first["metadata"].(map[string]any)["labels"].(map[string]any)["converted"] != "yes" || calls.Load() != 1 {
		c.t.Errorf("after %d calls: %v", calls.Load(), list)
	}
	made := c.want(201, "POST", path("v2beta1"), widget(group+"/v2beta1", "d", `{}`))
	if made["apiVersion"] != group+"/v2beta1" {
		c.t.Errorf("made %v", made)
	}
	broken.Store(true)
	if answer := c.want(500, "GET", path("v2beta1")+"/a", nil); !strings.Contains(fmt.Sprint(answer["message"]), "must have the same name") {
		c.t.Errorf("a webhook that answers with another object: %v", answer["message"])
	}
}

// rules: what a schema's rules in CEL refuse, and what they let pass.
func (c *custom) rules() {
	const group, path = "rules.test", "/apis/rules.test/v1/namespaces/default/widgets"
	ruled := func(rule string) *apiextensionsv1.CustomResourceDefinition {
		return widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions = d.Spec.Versions[:1]
			spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			spec.XValidations = apiextensionsv1.ValidationRules{{Rule: rule, Message: "it may not shrink"}, {Rule: "self.size < 100"}}
			d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		})
	}
	if answer := c.want(422, "POST", definitionsPath, ruled("self.nothing")); !strings.Contains(fmt.Sprint(answer["message"]), "undefined field 'nothing'") {
		c.t.Errorf("refused with %v", answer["message"])
	}
	c.define(ruled("self.size >= oldSelf.size"))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{"size":5}`))
	answer := c.want(422, "PATCH", path+"/a", `{"spec":{"size":4}}`, merge...)
	if want := `Widget.rules.test "a" is invalid: spec: Invalid value: "object": it may not shrink`; answer["message"] != want {
		c.t.Errorf("refused with %v", answer["message"])
	}
	c.want(422, "POST", path, widget(group+"/v1", "b", `{"size":100}`))
	c.want(200, "PATCH", path+"/a", `{"spec":{"size":6}}`, merge...)
	// A rule that comes later is not held against what breaks it already.
	stricter := ruled("self.size >= oldSelf.size")
	stricter.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].XValidations[1].Rule = "self.size < 6"
	text, err := json.Marshal(stricter.Spec.Versions)
	c.must(err)
	c.want(200, "PATCH", definitionsPath+"/widgets."+group, `{"spec":{"versions":`+string(text)+`}}`, merge...)
	c.want(200, "PATCH", path+"/a", `{"metadata":{"labels":{"a":"b"}}}`, merge...)
	c.want(422, "PATCH", path+"/a", `{"spec":{"size":7}}`, merge...)
}

// apply: two managers share an object, entry by entry of a list with keys.
func (c *custom) apply() {
	const group, path = "apply.test", "/apis/apply.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		var parts apiextensionsv1.JSONSchemaProps
		c.must(json.Unmarshal([]byte(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
			"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"value":{"type":"string"}}}}`), &parts))
		spec.Properties["parts"] = parts
	}))
	apply := func(code int, manager, spec string) map[string]any {
		c.t.Helper()
		return c.want(code, "PATCH", path+"/a?fieldManager="+manager, widget(group+"/v1", "a", spec), "Content-Type", "application/apply-patch+yaml")
	}
	made := apply(201, "one", `{"color":"red","parts":[{"name":"x","value":"1"}]}`)
	if spec := made["spec"].(map[string]any); spec["size"] != 3.0 {
		c.t.Errorf("not defaulted: %v", spec)
	}
	both := apply(200, "two", `{"parts":[{"name":"y","value":"2"}]}`)
	if parts := both["spec"].(map[string]any)["parts"].([]any); len(parts) != 2 {
		c.t.Errorf("not merged: %v", parts)
	}
	if answer := apply(409, "two", `{"color":"blue"}`); !strings.Contains(fmt.Sprint(answer["message"]), `conflict with "one": .spec.color`) {
		c.t.Errorf("conflict: %v", answer["message"])
	}
	left := apply(200, "one", `{"color":"red"}`)
	if parts := left["spec"].(map[string]any)["parts"].([]any); len(parts) != 1 {
		c.t.Errorf("what one manager let go of is still there: %v", parts)
	}
	if answer := apply(500, "one", `{"odd":1}`); !strings.Contains(fmt.Sprint(answer["message"]), ".spec.odd: field not declared in schema") {
		c.t.Errorf("an unknown field: %v", answer["message"])
	}
	created := c.want(201, "POST", path, widget(group+"/v1", "b", `{"color":"red"}`))["metadata"].(map[string]any)["managedFields"]
	if text, err := json.Marshal(created.([]any)[0].(map[string]any)["fieldsV1"]); err != nil || string(text) != `{"f:spec":{".":{},"f:color":{},"f:size":{}}}` {
		c.t.Errorf("accounts of a create: %s", text)
	}
	c.want(200, "PATCH", path+"/a?fieldManager=three", `{"spec":{"note":"n"}}`, merge...)
	managers := map[string]string{}
	for _, one := range c.want(200, "GET", path+"/a", nil)["metadata"].(map[string]any)["managedFields"].([]any) {
		entry := one.(map[string]any)
		text, err := json.Marshal(entry["fieldsV1"])
		c.must(err)
		managers[entry["manager"].(string)+" "+entry["operation"].(string)] = string(text)
	}
	want := map[string]string{
		"one Apply":    `{"f:spec":{"f:color":{}}}`,
		"two Apply":    `{"f:spec":{"f:parts":{"k:{\"name\":\"y\"}":{".":{},"f:name":{},"f:value":{}}}}}`,
		"three Update": `{"f:spec":{"f:note":{}}}`,
	}
	if fmt.Sprint(managers) != fmt.Sprint(want) {
		c.t.Errorf("accounts\n  %v instead of\n  %v", managers, want)
	}
}

// scale: the replicas of an object are read and changed where its definition
// says they are.
func (c *custom) scale() {
	const group, path = "scale.test", "/apis/scale.test/v1/namespaces/default/widgets"
	selector := ".status.color"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.count", LabelSelectorPath: &selector,
		}
		status := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		status.Properties["count"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
		status.Properties["color"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{}`))
	c.want(200, "PATCH", path+"/a/status", `{"status":{"count":2,"color":"a=b"}}`, merge...)
	scale := c.want(200, "GET", path+"/a/scale", nil)
	if scale["kind"] != "Scale" || fmt.Sprint(scale["spec"], scale["status"]) != "map[replicas:3] map[replicas:2 selector:a=b]" {
		c.t.Errorf("scale %v", scale)
	}
	c.want(200, "PATCH", path+"/a/scale", `{"spec":{"replicas":7}}`, merge...)
	if got := c.want(200, "GET", path+"/a", nil); fmt.Sprint(got["spec"], got["metadata"].(map[string]any)["generation"]) != "map[size:7] 2" {
		c.t.Errorf("scaled to %v", got)
	}
	c.want(200, "PATCH", path+"/a?fieldManager=one&force=true", widget(group+"/v1", "a", `{"size":5}`), "Content-Type", "application/apply-patch+yaml")
	c.want(422, "PATCH", path+"/a/scale", `{"spec":{"replicas":-1}}`, merge...)
	scale["spec"] = map[string]any{"replicas": 1}
	c.want(409, "PUT", path+"/a/scale", scale)
	c.want(404, "GET", "/apis/scale.test/v2beta1/namespaces/default/widgets/a/scale", nil)
	list := c.want(200, "GET", "/apis/scale.test/v1", nil)
	if text := fmt.Sprint(list); !strings.Contains(text, "group:autoscaling kind:Scale name:widgets/scale") {
		c.t.Errorf("discovery says %v", text)
	}
}

// hostile: what is not fit to be a definition is refused, in bounded time.
func (c *custom) hostile() {
	deep := `{"type":"string"}`
	for range 3000 {
		deep = `{"type":"object","properties":{"a":` + deep + `}}`
	}
	for name, text := range map[string]string{
		"a reference":       `{"type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"$ref":"#"}}}`,
		"no type":           `{"properties":{"a":{"type":"string"}}}`,
		"a bad pattern":     `{"type":"object","properties":{"a":{"type":"string","pattern":"(((("}}}`,
		"doubled structure": `{"type":"object","properties":{"a":{"type":"object","allOf":[{"type":"object"}]}}}`,
	} {
		d := widgets("hostile.test")
		props := &apiextensionsv1.JSONSchemaProps{}
		c.must(json.Unmarshal([]byte(text), props))
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = props
		if code, answer, _ := c.call("POST", definitionsPath, d); code != 422 {
			c.t.Errorf("%s: %d %v", name, code, answer["message"])
		}
	}
	d := widgets("deep.test")
	text, err := json.Marshal(d)
	c.must(err)
	nested := strings.Replace(string(text), `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`, `{"openAPIV3Schema":`+deep+`}`, 1)
	if code, answer, _ := c.call("POST", definitionsPath, nested); code != 201 && code != 422 && code != 400 {
		c.t.Errorf("deep: %d %v", code, answer["message"])
	}
}

// many: writers and readers go on while a definition comes, changes and goes.
func (c *custom) many() {
	const group, path = "many.test", "/apis/many.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				code, answer, _ := c.call("POST", path, widget(group+"/v1", fmt.Sprintf("w%d-%d", writer, i), `{}`))
				if code != 201 && code != 403 && code != 404 && code != 429 {
					c.t.Errorf("a writer was answered %d %v", code, answer["message"])
					return
				}
			}
		})
	}
	for i := range 10 {
		c.want(200, "PATCH", definitionsPath+"/widgets."+group, fmt.Sprintf(`{"spec":{"names":{"shortNames":["w%d"]}}}`, i), merge...)
	}
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	c.until("the definition is gone", func(context.Context) bool {
		code, _, _ := c.call("GET", definitionsPath+"/widgets."+group, nil)
		return code == 404
	})
	close(stop)
	writers.Wait()
	left, _, _, err := c.server.backend.storage.List(c.t.Context(), "/registry/"+group+"/", "", 0, 0)
	if err != nil || len(left) > 0 {
		c.t.Errorf("%d objects are left without a definition, %v", len(left), err)
	}
}

// events is a watch.
type events struct {
	t      *testing.T
	body   *http.Response
	reader *bufio.Reader
}

type event struct {
	Type   string
	Object map[string]any
}

func (c *custom) watch(path string) *events {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.address+path, nil)
	c.must(err)
	answer, err := c.root().HTTP().Do(request)
	c.must(err)
	return &events{c.t, answer, bufio.NewReader(answer.Body)}
}

func (e *events) Close() { _ = e.body.Body.Close() }

// next is the next event, nil where the watch has ended.
func (e *events) next() *event {
	line, err := e.reader.ReadBytes('\n')
	if err != nil {
		return nil
	}
	out := &event{}
	if err := json.Unmarshal(line, out); err != nil {
		e.t.Fatal(err)
	}
	return out
}
