package extensions

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// conversion: a webhook converts objects to another version.
func (c *custom) conversion() {
	var calls atomic.Int64
	var broken, large atomic.Bool
	hook := c.converting(func(all []*unstructured.Unstructured) {
		calls.Add(1)
		for _, o := range all {
			o.SetLabels(map[string]string{"converted": "yes"})
			if broken.Load() {
				o.SetName("another")
			}
			if large.Load() {
				o.Object["none"] = json.RawMessage("[" + strings.Repeat("{},", 200_000) + "{}]")
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
		c.T.Error("the webhook was asked for what is in the version it is stored in")
	}
	list := c.want(200, "GET", path("v2beta1"), nil)
	first := list["items"].([]any)[0].(map[string]any)
	if len(list["items"].([]any)) != 3 || first["metadata"].(map[string]any)["labels"].(map[string]any)["converted"] != "yes" || calls.Load() != 1 {
		c.T.Errorf("after %d calls: %v", calls.Load(), list)
	}
	made := c.want(201, "POST", path("v2beta1"), widget(group+"/v2beta1", "d", `{}`))
	if made["apiVersion"] != group+"/v2beta1" {
		c.T.Errorf("made %v", made)
	}
	broken.Store(true)
	if answer := c.want(500, "GET", path("v2beta1")+"/a", nil); !strings.Contains(fmt.Sprint(answer["message"]), "must have the same name") {
		c.T.Errorf("a webhook that answers with another object: %v", answer["message"])
	}
	broken.Store(false)
	large.Store(true)
	if answer := c.want(500, "GET", path("v2beta1")+"/a", nil); !strings.Contains(fmt.Sprint(answer["message"]), "failed: the answer contains 2") {
		c.T.Errorf("a webhook that answers with 200,001 objects in one: %v", answer["message"])
	}
}

// rules: what the CEL rules in a schema refuse, and what they accept.
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
		c.T.Errorf("refused with %v", answer["message"])
	}
	c.define(ruled("self.size >= oldSelf.size"))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{"size":5}`))
	answer := c.want(422, "PATCH", path+"/a", `{"spec":{"size":4}}`, merge...)
	if want := `Widget.rules.test "a" is invalid: spec: Invalid value: it may not shrink`; answer["message"] != want {
		c.T.Errorf("refused with %v", answer["message"])
	}
	c.want(422, "POST", path, widget(group+"/v1", "b", `{"size":100}`))
	c.want(200, "PATCH", path+"/a", `{"spec":{"size":6}}`, merge...)
	// Rules wait for the object to be whole otherwise, its metadata included.
	nameless := c.want(422, "POST", path, widget(group+"/v1", "", `{"size":100}`))
	if got := fmt.Sprint(nameless["message"]); !strings.Contains(got, "name or generateName is required") ||
		!strings.Contains(got, "some validation rules were not checked") {
		c.T.Errorf("without a name it is refused with %s", got)
	}
	// A new rule does not apply to what breaks it already.
	stricter := ruled("self.size >= oldSelf.size")
	stricter.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].XValidations[1].Rule = "self.size < 6"
	text, err := json.Marshal(stricter.Spec.Versions)
	c.Must(err)
	c.redefine("widgets."+group, `{"spec":{"versions":`+string(text)+`}}`)
	c.want(200, "PATCH", path+"/a", `{"metadata":{"labels":{"a":"b"}}}`, merge...)
	c.want(422, "PATCH", path+"/a", `{"spec":{"size":7}}`, merge...)
}

// apply: two managers share an object, and a list by its map keys.
func (c *custom) apply() {
	const group, path = "apply.test", "/apis/apply.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		var parts apiextensionsv1.JSONSchemaProps
		c.Must(json.Unmarshal([]byte(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
			"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"value":{"type":"string"}}}}`), &parts))
		spec.Properties["parts"] = parts
	}))
	apply := func(code int, manager, spec string) map[string]any {
		c.T.Helper()
		return c.want(code, "PATCH", path+"/a?fieldManager="+manager, widget(group+"/v1", "a", spec), "Content-Type", "application/apply-patch+yaml")
	}
	made := apply(201, "one", `{"color":"red","parts":[{"name":"x","value":"1"}]}`)
	if spec := made["spec"].(map[string]any); spec["size"] != 3.0 {
		c.T.Errorf("not defaulted: %v", spec)
	}
	both := apply(200, "two", `{"parts":[{"name":"y","value":"2"}]}`)
	if parts := both["spec"].(map[string]any)["parts"].([]any); len(parts) != 2 {
		c.T.Errorf("not merged: %v", parts)
	}
	if answer := apply(409, "two", `{"color":"blue"}`); !strings.Contains(fmt.Sprint(answer["message"]), `conflict with "one": .spec.color`) {
		c.T.Errorf("conflict: %v", answer["message"])
	}
	left := apply(200, "one", `{"color":"red"}`)
	if parts := left["spec"].(map[string]any)["parts"].([]any); len(parts) != 1 {
		c.T.Errorf("what a manager no longer applies is still there: %v", parts)
	}
	if answer := apply(500, "one", `{"odd":1}`); !strings.Contains(fmt.Sprint(answer["message"]), ".spec.odd: field not declared in schema") {
		c.T.Errorf("an unknown field: %v", answer["message"])
	}
	created := c.want(201, "POST", path, widget(group+"/v1", "b", `{"color":"red"}`))["metadata"].(map[string]any)["managedFields"]
	if text, err := json.Marshal(created.([]any)[0].(map[string]any)["fieldsV1"]); err != nil || string(text) != `{"f:spec":{".":{},"f:color":{},"f:size":{}}}` {
		c.T.Errorf("managedFields of a create: %s", text)
	}
	c.want(200, "PATCH", path+"/a?fieldManager=three", `{"spec":{"note":"n"}}`, merge...)
	managers := map[string]string{}
	for _, one := range c.want(200, "GET", path+"/a", nil)["metadata"].(map[string]any)["managedFields"].([]any) {
		entry := one.(map[string]any)
		text, err := json.Marshal(entry["fieldsV1"])
		c.Must(err)
		managers[entry["manager"].(string)+" "+entry["operation"].(string)] = string(text)
	}
	want := map[string]string{
		"one Apply":    `{"f:spec":{"f:color":{}}}`,
		"two Apply":    `{"f:spec":{"f:parts":{"k:{\"name\":\"y\"}":{".":{},"f:name":{},"f:value":{}}}}}`,
		"three Update": `{"f:spec":{"f:note":{}}}`,
	}
	if fmt.Sprint(managers) != fmt.Sprint(want) {
		c.T.Errorf("managedFields\n  %v instead of\n  %v", managers, want)
	}
}

// appliedAgain: what is applied again is no change, also in a version with a default for what the
// stored one lacks. Controllers apply whenever the object changes.
func (c *custom) appliedAgain() {
	const group, path = "again.test", "/apis/again.test/v2beta1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		later := d.Spec.Versions[0].Schema.DeepCopy()
		later.OpenAPIV3Schema.Properties["spec"].Properties["later"] = apiextensionsv1.JSONSchemaProps{
			Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"yes"`)},
		}
		d.Spec.Versions[1].Schema = later
	}))
	made := c.want(201, "POST", path, widget(group+"/v2beta1", "a", `{"color":"red"}`))
	apply := func() any {
		c.T.Helper()
		got := c.want(200, "PATCH", path+"/a?fieldManager=one&force=true", widget(group+"/v2beta1", "a", `{"color":"red"}`), "Content-Type",
			"application/apply-patch+yaml")
		if before, after := made["metadata"].(map[string]any)["generation"], got["metadata"].(map[string]any)["generation"]; before != after {
			c.T.Errorf("generation %v has become %v", before, after)
		}
		return got["metadata"].(map[string]any)["resourceVersion"]
	}
	if first, second := apply(), apply(); first != second {
		c.T.Errorf("version %v has become %v", first, second)
	}
}

// scale: an object's replicas are read and changed at the path in its
// definition.
func (c *custom) scale() {
	const group, path = "scale.test", "/apis/scale.test/v1/namespaces/default/widgets"
	selector := ".status.color"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.count", LabelSelectorPath: &selector,
		}
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["size"] = apiextensionsv1.JSONSchemaProps{Type: "integer"} // without a default
		status := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		status.Properties["count"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
		status.Properties["color"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{"size":3}`))
	c.want(200, "PATCH", path+"/a/status", `{"status":{"count":2,"color":"a=b"}}`, merge...)
	for status, says := range map[string]string{
		`{"count":-1}`:                     ".status.count: Invalid value: -1: should be a non-negative integer",
		`{"count":3000000000}`:             ".status.count: Invalid value: 3000000000: should be less than or equal to 2147483647",
		`{"count":1,"color":5}`:            `.status.color: Invalid value: "": .status.color accessor error: 5 is of the type int64, expected string`,
		`{"count":"many","color":"plain"}`: ".status.count: Invalid value: 0: .status.count accessor error: many is of the type string, expected int64",
	} {
		answer := c.want(422, "PATCH", path+"/a/status", `{"status":`+status+`}`, merge...)
		if said := fmt.Sprint(answer["message"]); !strings.Contains(said, says) {
			c.T.Errorf("%s: %s", status, said)
		}
	}
	scale := c.want(200, "GET", path+"/a/scale", nil)
	if scale["kind"] != "Scale" || fmt.Sprint(scale["spec"], scale["status"]) != "map[replicas:3] map[replicas:2 selector:a=b]" {
		c.T.Errorf("scale %v", scale)
	}
	c.want(200, "PATCH", path+"/a/scale", `{"spec":{"replicas":7}}`, merge...)
	if got := c.want(200, "GET", path+"/a", nil); fmt.Sprint(got["spec"], got["metadata"].(map[string]any)["generation"]) != "map[size:7] 2" {
		c.T.Errorf("scaled to %v", got)
	}
	c.want(200, "PATCH", path+"/a?fieldManager=one&force=true", widget(group+"/v1", "a", `{"size":5}`), "Content-Type", "application/apply-patch+yaml")
	c.want(422, "PATCH", path+"/a/scale", `{"spec":{"replicas":-1}}`, merge...)
	c.want(201, "POST", path, widget(group+"/v1", "unsaid", `{}`))
	for body, code := range map[string]int{`{"spec":{"replicas":4}}`: 200, `{}`: 400} {
		answer := c.want(code, "PATCH", path+"/unsaid/scale?dryRun=All", body, merge...)
		if said := fmt.Sprint(answer["spec"], answer["message"]); !strings.Contains(said, "map[replicas:4]") && !strings.Contains(said, "cannot be empty") {
			c.T.Errorf("%s: %v", body, answer)
		}
	}
	c.want(500, "GET", path+"/unsaid/scale", nil)
	scale["spec"] = map[string]any{"replicas": 1}
	c.want(409, "PUT", path+"/a/scale", scale)
	c.want(404, "GET", "/apis/scale.test/v2beta1/namespaces/default/widgets/a/scale", nil)
	list := c.want(200, "GET", "/apis/scale.test/v1", nil)
	if text := fmt.Sprint(list); !strings.Contains(text, "group:autoscaling kind:Scale name:widgets/scale") {
		c.T.Errorf("discovery says %v", text)
	}
}
