package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// retell replaces a definition's versions.
func (c *custom) retell(d *apiextensionsv1.CustomResourceDefinition) {
	c.T.Helper()
	text, err := json.Marshal(d.Spec.Versions)
	c.Must(err)
	c.redefine(d.Name, `{"spec":{"versions":`+string(text)+`}}`)
}

// redefine changes a definition and reads it: who has seen the change finds it served.
func (c *custom) redefine(name, patch string) {
	c.T.Helper()
	c.want(200, "PATCH", definitionsPath+"/"+name, patch, merge...)
	c.want(200, "GET", definitionsPath+"/"+name, nil)
}

// property adds a property to the first version's schema.
func (c *custom) property(d *apiextensionsv1.CustomResourceDefinition, part, name, schema string) {
	c.T.Helper()
	props := apiextensionsv1.JSONSchemaProps{}
	c.Must(json.Unmarshal([]byte(schema), &props))
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part].Properties[name] = props
}

// stored: a definition without a schema, and an object with unreadable
// metadata, both as an older server stored them. A condition tells of the definition until it
// has a schema.
func (c *custom) stored() {
	const group, path = "stored.test", "/apis/stored.test/v1/namespaces/default/widgets"
	_, err := c.Server.Storage().Create(c.T.Context(), "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets."+group, []byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1",
		"kind":"CustomResourceDefinition","metadata":{"name":"widgets.stored.test","uid":"1","creationTimestamp":"2019-01-01T00:00:00Z"},"spec":{"group":"stored.test","version":"v1","scope":"Namespaced",
		"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true}],"preserveUnknownFields":true}}`), 0)
	c.Must(err)
	c.Until("a definition that was stored is established", func(context.Context) bool { return c.condition("widgets."+group, "Established") == "True" })
	if made := c.want(201, "POST", path, widget(group+"/v1", "a", `{"odd":1}`)); made["spec"].(map[string]any)["odd"] != 1.0 {
		c.T.Errorf("without a schema everything is kept: %v", made)
	}
	_, err = c.Server.Storage().Create(c.T.Context(), "/registry/"+group+"/widgets/default/b",
		[]byte(`{"apiVersion":"stored.test/v1","kind":"Widget","metadata":{"name":"b","namespace":"default","uid":"2","annotations":{"a":42}}}`), 0)
	c.Must(err)
	if answer := c.want(200, "DELETE", path+"/b", nil); answer["details"].(map[string]any)["uid"] != "2" {
		c.T.Errorf("deleted: %v", answer)
	}
	c.Until("the definition is known to have no structural schema", func(context.Context) bool {
		return c.condition("widgets."+group, "NonStructuralSchema") == "True"
	})
	c.want(200, "PATCH", definitionsPath+"/widgets."+group, `{"spec":{"preserveUnknownFields":false,"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, merge...)
	c.Until("the definition has one", func(context.Context) bool { return c.condition("widgets."+group, "NonStructuralSchema") == "" })
}

// defaults: those of the version that was sent and of the version that is
// stored; not those of the version that is read.
func (c *custom) defaults() {
	const group, path = "defaults.test", "/apis/defaults.test/v2/namespaces/default/widgets"
	for name, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"none": func(*apiextensionsv1.CustomResourceDefinition) {}, "webhook": c.converting(func([]*unstructured.Unstructured) {}),
	} {
		group := name + "." + group
		path := strings.Replace(path, "defaults", name+".defaults", 1)
		d := widgets(group, change, func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[1] = *d.Spec.Versions[0].DeepCopy()
			d.Spec.Versions[1].Name, d.Spec.Versions[1].Storage = "v2", false
			c.property(d, "spec", "both", `{"type":"string"}`)
			d.Spec.Versions[0], d.Spec.Versions[1] = d.Spec.Versions[1], d.Spec.Versions[0]
			c.property(d, "spec", "both", `{"type":"string","default":"asked"}`)
		})
		c.define(d)
		c.want(201, "POST", strings.Replace(path, "/v2/", "/v1/", 1), widget(group+"/v1", "a", `{}`))
		if spec := c.want(200, "GET", path+"/a", nil)["spec"].(map[string]any); spec["both"] != nil || spec["size"] != 3.0 {
			c.T.Errorf("%s: read as %v", name, spec)
		}
		if spec := c.want(201, "POST", path, widget(group+"/v2", "b", `{}`))["spec"].(map[string]any); spec["both"] != "asked" {
			c.T.Errorf("%s: sent as %v", name, spec)
		}
	}
}

// statusDefault: a new object gets the default of its status, as Contour's
// HTTPProxies need it, whatever the client sent.
func (c *custom) statusDefault() {
	const group, path = "statusdefault.test", "/apis/statusdefault.test/v1/namespaces/default/widgets"
	d := widgets(group)
	status := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	status.Default = &apiextensionsv1.JSON{Raw: []byte(`{"ready":false}`)}
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = status
	c.define(d)
	for name, sent := range map[string]string{
		"a": widget(group+"/v1", "a", `{}`), "b": `{"apiVersion":"statusdefault.test/v1","kind":"Widget","metadata":{"name":"b"},"status":{"ready":true}}`,
	} {
		made, read := c.want(201, "POST", path, sent)["status"], c.want(200, "GET", path+"/"+name, nil)["status"]
		if want := map[string]any{"ready": false}; !reflect.DeepEqual(made, want) || !reflect.DeepEqual(read, want) {
			c.T.Errorf("%s: made with status %v, read with %v", name, made, read)
		}
	}
}

// bundle: a definition whose webhook has an invalid caBundle is not
// established.
func (c *custom) bundle() {
	const group = "bundle.test"
	hook := c.converting(func([]*unstructured.Unstructured) {})
	c.want(201, "POST", definitionsPath, widgets(group, hook, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("none")
	}))
	c.Until("the names are accepted", func(context.Context) bool { return c.condition("widgets."+group, "Established") != "" })
	if got := c.condition("widgets."+group, "Established"); got != "False" {
		c.T.Errorf("established: %s", got)
	}
	text, err := json.Marshal(widgets(group, hook).Spec.Conversion)
	c.Must(err)
	c.want(200, "PATCH", definitionsPath+"/widgets."+group, `{"spec":{"conversion":`+string(text)+`}}`, merge...)
	c.Until("it is established", func(context.Context) bool { return c.condition("widgets."+group, "Established") == "True" })
}

// beta: a webhook is called with the first version of ConversionReview that it
// supports.
func (c *custom) beta() {
	const group = "beta.test"
	c.define(widgets(group, c.convertingIn("v1beta1", []string{"v1alpha1", "v1beta1", "v1"}, func([]*unstructured.Unstructured) {})))
	c.want(201, "POST", "/apis/"+group+"/v2beta1/namespaces/default/widgets", widget(group+"/v2beta1", "a", `{}`))
}

// loosened: an invalid list may stay as it is, and the entries of a map may
// change places.
func (c *custom) loosened() {
	const group, path = "loosened.test", "/apis/loosened.test/v1/namespaces/default/widgets"
	list := func(keys, more string) *apiextensionsv1.CustomResourceDefinition {
		return widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions = d.Spec.Versions[:1]
			c.property(d, "spec", "list", `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":`+keys+more+
				`,"items":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}}}`)
		})
	}
	c.define(list(`["a","b"]`, ""))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{"list":[{"a":"1","b":"1"},{"a":"1","b":"2"}]}`))
	c.retell(list(`["a","b"]`, `,"maxItems":1`))
	c.want(200, "PATCH", path+"/a", `{"spec":{"list":[{"a":"1","b":"2"},{"a":"1","b":"1"}]}}`, merge...)
	c.want(422, "PATCH", path+"/a", `{"spec":{"list":[{"a":"1","b":"2"},{"a":"1","b":"1","c":"1"}]}}`, merge...)
	c.retell(list(`["a"]`, ""))
	c.want(200, "PATCH", path+"/a", `{"spec":{"list":[{"a":"1","b":"2"},{"a":"1","b":"3"}]}}`, merge...)
	c.want(422, "POST", path, widget(group+"/v1", "b", `{"list":[{"a":"1","b":"1"},{"a":"1","b":"2"}]}`))
}

// statuses: a status is validated alone, and errors name it.
func (c *custom) statuses() {
	const group, path = "statuses.test", "/apis/statuses.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		c.property(d, "status", "number", `{"type":"integer","maximum":10}`)
	}))
	c.want(201, "POST", path, widget(group+"/v1", "a", `{}`))
	answer := c.want(422, "PATCH", path+"/a/status", `{"status":{"number":15}}`, merge...)
	if want := `Widget.statuses.test "a" is invalid: status.number: Invalid value: 15: number in body should be less than or equal to 10`; answer["message"] != want {
		c.T.Errorf("refused with %v", answer["message"])
	}
}

// described: the documents name the selectable fields.
func (c *custom) described() {
	const group = "described.test"
	c.define(widgets(group))
	for _, at := range []string{"/openapi/v2", "/openapi/v3/apis/" + group + "/v1"} {
		c.Until(at+" tells the fields", func(context.Context) bool {
			_, text := c.Ask("GET", at, nil, nil)
			return strings.Contains(string(text), `"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]`)
		})
	}
}

// embedded: the names of embedded objects are validated.
func (c *custom) embedded() {
	const group, path = "embedded.test", "/apis/embedded.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		c.property(d, "spec", "pod", `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`)
	}))
	c.want(422, "POST", definitionsPath, widgets("root."+group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XEmbeddedResource: true}
		d.Spec.Versions[0].SelectableFields = nil
	}))
	for name, code := range map[string]int{"a": 201, "..": 422, "a/b": 422} {
		answer := c.want(code, "POST", path, widget(group+"/v1", "a", `{"pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+name+`"}}}`))
		if code == 422 && !strings.Contains(fmt.Sprint(answer["message"]), `spec.pod.metadata.name: Invalid value: "`+name+`"`) {
			c.T.Errorf("refused with %v", answer["message"])
		}
	}
}
