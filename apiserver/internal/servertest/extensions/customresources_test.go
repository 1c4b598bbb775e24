package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestCustomResources tests all aspects of custom resources on one server.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	c := start(t)
	for name, test := range map[string]func(c *custom){
		"objects": (*custom).objects, "versions": (*custom).versions, "names": (*custom).names, "documents": (*custom).documents,
		"house": (*custom).house, "end": (*custom).end, "endless": (*custom).endless, "stuck": (*custom).stuck, "unconverted": (*custom).unconverted,
		"replaced": (*custom).replaced, "change": (*custom).change, "conversion": (*custom).conversion,
		"rules": (*custom).rules, "apply": (*custom).apply, "applied again": (*custom).appliedAgain, "scale": (*custom).scale,
		"hostile": (*custom).hostile, "verbs": (*custom).verbs, "many": (*custom).many, "webhook": (*custom).webhook, "selected": (*custom).selected,
		"preserved": (*custom).preserved, "resets": (*custom).resets, "patched": (*custom).patched, "owned": (*custom).owned, "newer": (*custom).newer,
		"empty": (*custom).empty, "malformed": (*custom).malformed, "unreadable": (*custom).unreadable,
		"defaults": (*custom).defaults, "default status": (*custom).statusDefault, "bundle": (*custom).bundle, "stored": (*custom).stored,
		"loosened": (*custom).loosened, "statuses": (*custom).statuses, "beta": (*custom).beta, "embedded": (*custom).embedded, "other kind": (*custom).otherKind,
		"described": (*custom).described,
	} {
		t.Run(name, func(t *testing.T) { test(&custom{&cluster{c.In(t)}}) })
	}
}

// objects: the life of one object, from defaults to deletion.
func (c *custom) objects() {
	const group, path = "objects.test", "/apis/objects.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ListKind = "SetOfWidgets" }))
	made := c.want(201, "POST", path, widget(group+"/v1", "a", `{"color":"red","odd":1}`))
	if size, _, _ := unstructured.NestedInt64(toInts(made), "spec", "size"); size != 3 {
		c.T.Errorf("not defaulted: %v", made)
	}
	if _, odd, _ := unstructured.NestedFieldNoCopy(made, "spec", "odd"); odd {
		c.T.Error("an unknown field was kept")
	}
	const unqualified = `299 - "metadata.finalizers: \"f\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"`
	pathless := `299 - "metadata.finalizers: \"f.test\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"`
	for finalizers, want := range map[string]string{`["f"]`: unqualified, `["f.test"]`: pathless, `["objects.test/f","orphan"]`: ""} {
		if _, _, header := c.call("PATCH", path+"/a?dryRun=All", `{"metadata":{"finalizers":`+finalizers+`}}`, merge...); header.Get("Warning") != want {
			c.T.Errorf("finalizers %s: warned %q", finalizers, header.Get("Warning"))
		}
	}
	_, _, header := c.call("PATCH", path+"/a", `{"spec":{"odd":1}}`, append(merge, "X", "")...)
	if !slices.Contains(header.Values("Warning"), `299 - "unknown field \"spec.odd\""`) {
		c.T.Errorf("warnings %q", header.Values("Warning"))
	}
	c.want(422, "POST", path, widget(group+"/v1", "b", `{"size":0}`))
	c.want(400, "POST", path+"?fieldValidation=Strict", widget(group+"/v1", "b", `{"odd":0}`))
	c.want(400, "POST", path, widget(group+"/v9", "b", `{}`))
	c.want(415, "PATCH", path+"/a", `{}`, "Content-Type", "application/strategic-merge-patch+json")
	c.want(406, "GET", path+"/a", nil, "Accept", "application/vnd.kubernetes.protobuf")

	generation := func(o map[string]any) string { return fmt.Sprint(o["metadata"].(map[string]any)["generation"]) }
	changed := c.want(200, "PATCH", path+"/a", `[{"op":"add","path":"/spec/size","value":5}]`, "Content-Type", "application/json-patch+json")
	if generation(changed) != "2" {
		c.T.Errorf("generation is %s after a change", generation(changed))
	}
	status := c.want(200, "PATCH", path+"/a/status", `{"spec":{"size":9},"status":{"ready":true}}`, merge...)
	if spec := status["spec"].(map[string]any); spec["size"] != 5.0 || generation(status) != "2" {
		c.T.Errorf("/status changed %v", status)
	}
	if after := c.want(200, "PATCH", path+"/a", `{"status":{"ready":false}}`, merge...); after["status"].(map[string]any)["ready"] != true {
		c.T.Error("the status was changed beside /status")
	}
	table := c.want(200, "GET", path, nil, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	rows, _, _ := unstructured.NestedSlice(table, "rows")
	if len(rows) != 1 || fmt.Sprint(rows[0].(map[string]any)["cells"]) != "[a 5]" {
		c.T.Errorf("rows %v", rows)
	}
	c.want(201, "POST", path, widget(group+"/v1", "b", `{"color":"blue"}`))
	list := c.want(200, "GET", path+"?fieldSelector=spec.color=blue", nil)
	if list["kind"] != "SetOfWidgets" {
		c.T.Errorf("the list is a %v", list["kind"])
	}
	if items := list["items"].([]any); len(items) != 1 || items[0].(map[string]any)["kind"] != "Widget" { // which items of built-in lists don't have
		c.T.Errorf("these objects are blue: %v", items)
	}
	c.want(400, "GET", path+"?fieldSelector=spec.size=5", nil)
	counted := "\napiserver_resource_objects{group=\"" + group + "\",resource=\"widgets\"} 2\n"
	if _, metrics := c.Ask("GET", "/metrics", nil, nil); !strings.Contains(string(metrics), counted) {
		c.T.Error("the objects are not counted")
	}
	c.want(200, "DELETE", path+"/a", nil)
	c.want(200, "DELETE", path, nil)
	c.want(404, "GET", path+"/b", nil)
	c.want(404, "GET", path+"/b/scale", nil)
	c.want(405, "POST", path+"/b", `{}`)
	stored, err := c.Server.Storage().Get(c.T.Context(), "/registry/"+group+"/widgets/default/a")
	if err == nil {
		c.T.Errorf("still stored: %s", stored.Value)
	}
}

// otherKind: an object that claims another kind is called by that kind in the
// refusal.
func (c *custom) otherKind() {
	const group = "otherkind.test"
	c.define(widgets(group))
	body := strings.Replace(widget(group+"/v1", "a", `{}`), `"Widget"`, `"Gadget"`, 1)
	answer := c.want(422, "POST", "/apis/"+group+"/v1/namespaces/default/widgets", body)
	if want := `Gadget.` + group + ` "a" is invalid: kind: Invalid value: "Gadget": must be Widget`; answer["message"] != want {
		c.T.Errorf("refused with %v", answer["message"])
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

// versions: an object is the same in all versions, whichever is stored.
func (c *custom) versions() {
	const group = "versions.test"
	c.define(widgets(group))
	path := func(version string) string { return "/apis/" + group + "/" + version + "/namespaces/default/widgets" }
	c.want(201, "POST", path("v1"), widget(group+"/v1", "a", `{"color":"red"}`))
	code, got, header := c.call("GET", path("v2beta1")+"/a", nil)
	if code != 200 || got["apiVersion"] != group+"/v2beta1" || got["spec"].(map[string]any)["color"] != "red" {
		c.T.Errorf("in the other version: %d %v", code, got)
	}
	if w := header.Get("Warning"); w != `299 - "versions.test/v2beta1 Widget is deprecated; use versions.test/v1 Widget"` {
		c.T.Errorf("warning %q", w)
	}
	c.want(201, "POST", path("v2beta1"), widget(group+"/v2beta1", "b", `{"color":"blue","odd":1}`))
	stored, err := c.Server.Storage().Get(c.T.Context(), "/registry/"+group+"/widgets/default/b")
	if err != nil || !strings.Contains(string(stored.Value), group+`/v1"`) || strings.Contains(string(stored.Value), `"odd":`) {
		c.T.Errorf("stored as %s, %v", stored.Value, err)
	}
	events := c.watch(path("v2beta1") + "?watch=1&resourceVersion=0")
	defer events.Close()
	for range 2 {
		if e := events.next(); e.Type != "ADDED" || e.Object["apiVersion"] != group+"/v2beta1" {
			c.T.Errorf("event %v", e)
		}
	}
	// The storage version changes; what is stored stays readable.
	other := `{"spec":{"versions":%s}}`
	versions := widgets(group).Spec.Versions
	versions[0].Storage, versions[1].Storage = false, true
	text, err := json.Marshal(versions)
	c.Must(err)
	c.want(200, "PATCH", definitionsPath+"/widgets."+group, fmt.Sprintf(other, text), merge...)
	if e := events.next(); e != nil {
		c.T.Errorf("a watch went on over a change of the definition: %v", e)
	}
	if list := c.want(200, "GET", path("v1"), nil); len(list["items"].([]any)) != 2 {
		c.T.Errorf("after the change: %v", list)
	}
	c.want(200, "PATCH", path("v1")+"/a", `{"spec":{"color":"green"}}`, merge...)
	stored, err = c.Server.Storage().Get(c.T.Context(), "/registry/"+group+"/widgets/default/a")
	if err != nil || !strings.Contains(string(stored.Value), group+`/v2beta1"`) {
		c.T.Errorf("stored as %s, %v", stored.Value, err)
	}
	c.want(422, "PATCH", definitionsPath+"/widgets."+group,
		`{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, merge...)
}

// change: a new default applies to stored objects.
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
	c.Must(err)
	c.redefine("widgets."+group, `{"spec":{"versions":`+string(text)+`}}`)
	got := c.want(200, "GET", path+"/a", nil)["spec"].(map[string]any)
	if got["weight"] != 7.0 || got["color"] != nil {
		c.T.Errorf("stored before the schema: %v", got)
	}
}

// names: names that are taken are not accepted, until they are free.
func (c *custom) names() {
	const group = "names.test"
	c.define(widgets(group))
	second := widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Name, d.Spec.Names.Plural = "gadgets."+group, "gadgets"
		d.Spec.Names.Kind = "Gadget"
	})
	c.want(201, "POST", definitionsPath, second)
	c.Until("the conflict is told", func(context.Context) bool { return c.condition(second.Name, "NamesAccepted") == "False" })
	if established := c.condition(second.Name, "Established"); established != "False" {
		c.T.Errorf("established: %s", established)
	}
	c.want(404, "GET", "/apis/"+group+"/v1/gadgets", nil)
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	c.Until("the name is free", func(context.Context) bool { return c.condition(second.Name, "Established") == "True" })
	c.want(200, "GET", "/apis/"+group+"/v1/gadgets", nil)
}

// documents: discovery and OpenAPI show a resource as soon as it exists.
func (c *custom) documents() {
	const group = "documents.test"
	c.want(404, "GET", "/apis/"+group, nil)
	before := c.want(200, "GET", "/openapi/v3", nil)["paths"].(map[string]any)
	c.define(widgets(group))
	list := c.want(200, "GET", "/apis/"+group+"/v1", nil)
	text, err := json.Marshal(list)
	c.Must(err)
	for _, want := range []string{`"shortNames":["wd"]`, `"widgets/status"`, `"categories":["all"]`} {
		if !strings.Contains(string(text), want) {
			c.T.Errorf("%s lacks %s", text, want)
		}
	}
	together := c.want(200, "GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if text, err = json.Marshal(together); err != nil || !strings.Contains(string(text), `"name":"documents.test"`) {
		c.T.Errorf("not in the aggregated document: %v", err)
	}
	paths := c.want(200, "GET", "/openapi/v3", nil)["paths"].(map[string]any)
	entry, ok := paths["apis/"+group+"/v1"].(map[string]any)
	if !ok {
		c.T.Fatalf("OpenAPI lists %d documents and lacks it", len(paths))
	}
	if before["api/v1"].(map[string]any)["serverRelativeURL"] != paths["api/v1"].(map[string]any)["serverRelativeURL"] {
		c.T.Error("other documents changed")
	}
	document := c.want(200, "GET", entry["serverRelativeURL"].(string), nil)
	described, _, _ := unstructured.NestedFieldNoCopy(document,
		"components", "schemas", "test.documents.v1.Widget", "properties", "spec", "properties", "size", "minimum")
	if described != 1.0 {
		c.T.Errorf("minimum is %v", described)
	}
	second := c.want(200, "GET", "/openapi/v2", nil)
	definitions := second["definitions"].(map[string]any)
	if _, ok := definitions["test.documents.v1.WidgetList"]; !ok {
		c.T.Error("the list is not in v2")
	}
	// A schema that preserves unknown fields has no properties in v2: clients
	// would refuse all others.
	free := definitions["test.documents.v2beta1.Widget"].(map[string]any)
	if free["type"] != "object" || free["properties"] != nil || free["x-kubernetes-preserve-unknown-fields"] != nil {
		c.T.Errorf("v2 says of what takes anything: %v", free)
	}
}

// house: custom resources are deleted with their namespaces and owners.
func (c *custom) house() {
	const group, path = "house.test", "/apis/house.test/v1/namespaces/"
	c.define(widgets(group))
	c.Namespace("crowded")
	c.want(201, "POST", path+"crowded/widgets", widget(group+"/v1", "a", `{}`))
	owner := c.want(201, "POST", path+"default/widgets", widget(group+"/v1", "owner", `{}`))
	uid := owner["metadata"].(map[string]any)["uid"]
	child := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child","ownerReferences":[{"apiVersion":%q,"kind":"Widget","name":"owner","uid":%q}]}}`, group+"/v1", uid)
	c.want(201, "POST", "/api/v1/namespaces/default/configmaps", child)
	c.want(200, "DELETE", "/api/v1/namespaces/crowded", nil)
	c.Until("the namespace is gone", func(context.Context) bool {
		code, _, _ := c.call("GET", "/api/v1/namespaces/crowded", nil)
		return code == 404
	})
	if list := c.want(200, "GET", "/apis/house.test/v1/widgets", nil); len(list["items"].([]any)) != 1 {
		c.T.Errorf("left: %v", list)
	}
	c.want(200, "GET", "/api/v1/namespaces/default/configmaps/child", nil)
	// The definition's objects are deleted with it, and what these own.
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	c.Until("the dependent is gone", func(context.Context) bool {
		code, _, _ := c.call("GET", "/api/v1/namespaces/default/configmaps/child", nil)
		return code == 404
	})
}

// end: a definition is deleted when its last object is gone; meanwhile no new
// objects can be created, and its watches end.
func (c *custom) end() {
	const group, path = "end.test", "/apis/end.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	held := strings.Replace(widget(group+"/v1", "a", `{}`), `"name":"a"`, `"name":"a","finalizers":["x.test/hold"]`, 1)
	c.want(201, "POST", path, held)
	c.want(201, "POST", path, `{"apiVersion":"`+group+`/v1","kind":"Widget","metadata":{"name":"c","finalizers":["x.test/hold"]}}`)
	events := c.watch(path + "?watch=1")
	defer events.Close()
	// An error that would make any update fail does not keep a definition from
	// being deleted.
	stored := c.want(200, "PATCH", definitionsPath+"/widgets."+group+"/status", `{"status":{"storedVersions":["v9"]}}`, merge...)
	if got := fmt.Sprint(stored["status"].(map[string]any)["storedVersions"]); got != "[v9]" {
		c.T.Errorf("stored versions %s", got)
	}
	c.want(422, "PATCH", definitionsPath+"/widgets."+group+"/status", `{"status":{"acceptedNames":{"singular":"A"}}}`, merge...)
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	again := c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)["metadata"].(map[string]any)
	if grace, found := again["deletionGracePeriodSeconds"]; !found || grace != 0.0 {
		c.T.Errorf("deleted again: %v", again)
	}
	c.want(403, "POST", path, widget(group+"/v1", "b", `{}`))
	c.want(403, "PATCH", path+"/b?fieldManager=m", widget(group+"/v1", "b", `{}`), "Content-Type", "application/apply-patch+yaml")
	served := c.want(200, "GET", "/apis/"+group+"/v1", nil)["resources"].([]any)
	if verbs := fmt.Sprint(served[0].(map[string]any)["verbs"]); verbs != "[delete deletecollection get list watch]" {
		c.T.Errorf("the verbs of a deleted definition are %s", verbs)
	}
	c.Until("the object is asked to go", func(context.Context) bool {
		return c.want(200, "GET", path+"/a", nil)["metadata"].(map[string]any)["deletionTimestamp"] != nil
	})
	last := c.want(200, "PATCH", path+"/c", `{"metadata":{"finalizers":null}}`, merge...)["metadata"].(map[string]any)
	if entries, found := last["managedFields"]; found {
		c.T.Errorf("an owner of no fields has managedFields: %v", entries)
	}
	c.want(200, "PATCH", path+"/a", `{"metadata":{"finalizers":null}}`, merge...)
	c.Until("the definition no longer exists", func(context.Context) bool {
		code, _, _ := c.call("GET", definitionsPath+"/widgets."+group, nil)
		return code == 404
	})
	seen := ""
	for e := events.next(); e != nil; e = events.next() {
		seen = e.Type
	}
	if seen != "DELETED" {
		c.T.Errorf("the watch ended after %q", seen)
	}
	c.want(404, "GET", path, nil)
	c.want(404, "GET", "/apis/"+group, nil)
}

// endless: a deleted definition whose objects can't be read is retried now and
// then, and does not change meanwhile; one whose status is invalid is deleted
// like any other.
func (c *custom) endless() {
	var calls atomic.Int64
	var broken atomic.Bool
	const group, path = "endless.test", "/apis/endless.test/v1/namespaces/default/widgets"
	const definition = definitionsPath + "/widgets." + group
	c.define(widgets(group, c.converting(func(all []*unstructured.Unstructured) {
		calls.Add(1)
		if broken.Load() {
			all[0].SetName("another")
		}
	})))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{}`))
	c.want(200, "PATCH", definition,
		`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
	c.want(200, "PATCH", definition+"/status", `{"status":{"storedVersions":["v1","v9"]}}`, merge...)
	broken.Store(true)
	c.want(200, "DELETE", definition, nil)
	read := func() (definition string) {
		got := c.want(200, "GET", definitionsPath+"/widgets."+group, nil)
		return fmt.Sprint(got["metadata"].(map[string]any)["resourceVersion"], got["status"])
	}
	c.Until("the deletion is said to fail", func(context.Context) bool { return strings.Contains(read(), "InstanceDeletionFailed") })
	before, asked := read(), calls.Load()
	c.Until("it is tried again", func(context.Context) bool { return calls.Load() > asked+1 })
	if after := read(); after != before {
		c.T.Errorf("it changed from attempt to attempt:\n%s\n%s", before, after)
	}
	broken.Store(false)
	c.Until("the definition no longer exists", func(context.Context) bool {
		code, _, _ := c.call("GET", definition, nil)
		return code == 404
	})
}
