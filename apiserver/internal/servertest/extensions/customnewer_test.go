package extensions

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// newer: a version has fields that an older one has not. Who owns fields in the older one keeps
// nobody from applying them, and an apply that is merged in both versions loses none of them;
// what their owner no longer applies goes, and nothing else of them does.
func (c *custom) newer() {
	c.newerIn("newer.test", func(*apiextensionsv1.CustomResourceDefinition) {})
	c.newerIn("newerhook.test", c.converting(func([]*unstructured.Unstructured) {}))
}

func (c *custom) newerIn(group string, conversion func(*apiextensionsv1.CustomResourceDefinition)) {
	c.define(widgets(group, conversion, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[1].Schema = d.Spec.Versions[0].Schema.DeepCopy()
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
		for name, schema := range map[string]string{
			"extra": `{"type":"string"}`,
			"from":  `{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"policy":{"type":"string"}}}}`,
			"parts": `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}`,
		} {
			var props apiextensionsv1.JSONSchemaProps
			if err := json.Unmarshal([]byte(schema), &props); err != nil {
				c.T.Fatal(err)
			}
			spec[name] = props
		}
		from := new(spec["from"]).DeepCopy()
		delete(from.Items.Schema.Properties, "policy")
		d.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"].Properties["from"] = *from
	}))
	path := "/apis/" + group + "/v1/namespaces/default/widgets/"
	apply := func(version, manager, name, spec string) map[string]any {
		c.T.Helper()
		_, got, _ := c.call("PATCH", "/apis/"+group+"/"+version+"/namespaces/default/widgets/"+name+"?fieldManager="+manager,
			widget(group+"/"+version, name, spec), "Content-Type", "application/apply-patch+yaml")
		return got
	}
	spec := func(got map[string]any, want string) {
		c.T.Helper()
		if have := fmt.Sprint(got["spec"]); have != want {
			c.T.Errorf("%s, not %s: %v", have, want, got)
		}
	}
	apply("v2beta1", "old", "a", `{"size":1}`)
	apply("v1", "new", "a", `{"color":"red","extra":"x","from":[{"key":"k","policy":"all"}],"parts":[{"name":"p"},{"name":"q"}]}`)
	spec(apply("v1", "new", "a", `{"color":"blue","extra":"x","from":[{"key":"k","policy":"all"}],"parts":[{"name":"q"}]}`),
		"map[color:blue extra:x from:[map[key:k policy:all]] parts:[map[name:q]] size:1]")
	spec(apply("v1", "new", "a", `{"from":[{"key":"k"}]}`), "map[from:[map[key:k]] size:1]")

	apply("v2beta1", "moves", "b", `{"color":"red","note":"n"}`)
	c.want(200, "PATCH", path+"b?fieldManager=other", `{"spec":{"extra":"y"}}`, merge...)
	moved := apply("v1", "moves", "b", `{"color":"red"}`)
	spec(moved, "map[color:red extra:y size:3]")
	c.want(200, "PATCH", path+"b", `{"spec":{"size":4}}`, merge...)
	refusal := `Apply failed with 1 conflict: conflict with "other" using ` + group + `/v1: .spec.extra`
	if conflict := apply("v1", "third", "b", `{"extra":"z"}`); conflict["message"] != refusal {
		c.T.Errorf("the field's owner is not known any more: %v", conflict["message"])
	}
}
