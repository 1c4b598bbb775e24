package extensions

import (
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// preserved: unknown fields that a schema preserves are kept in list items,
// too, and can be applied; null and unknown values that are not allowed are
// reported. The answers are kube-apiserver's.
func (c *custom) preserved() {
	const group, path = "preserved.test", "/apis/preserved.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions = d.Spec.Versions[:1]
		root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
		spec := root.Properties["spec"]
		for name, text := range map[string]string{
			"free":   `{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"known":{"type":"object"}}}}`,
			"nested": `{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"array","items":{"type":"object"}}}`,
			"inner":  `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`,
			"fields": `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"known":{"type":"object"}}}`,
		} {
			var props apiextensionsv1.JSONSchemaProps
			if err := json.Unmarshal([]byte(text), &props); err != nil {
				c.T.Fatal(err)
			}
			spec.Properties[name] = props
		}
		root.Properties["spec"] = spec
	}))
	for _, of := range []string{"GET " + path, "DELETE " + path} {
		method, at, _ := strings.Cut(of, " ")
		if answer := c.want(400, method, at+"?fieldSelector=spec.size%3D1", nil); answer["message"] != "field label not supported: spec.size" {
			c.T.Errorf("%s by a field that none may select: %v", method, answer["message"])
		}
	}
	const (
		applied = `application/apply-patch+yaml`
		plain   = `application/json`
	)
	for _, test := range []struct {
		method, media, sent string
		code                int
		has                 string // in the spec or the message
		warned              string
	}{
		{"POST", plain, `{"free":[{"x":{"y":1},"known":{"z":2}}]}`, 201, `"free":[{"known":{},"x":{"y":1}}]`, `unknown field \"spec.free[0].known.z\"`},
		{"POST", plain, `{"nested":[[{"x":{"y":1}}]]}`, 201, `"nested":[[{"x":{"y":1}}]]`, ""},
		{"POST", plain, `{"fields":{"known":{"z":2},"x":{"y":1}}}`, 201, `"fields":{"known":{},"x":{"y":1}}`, `unknown field \"spec.fields.known.z\"`},
		{"POST", plain, `{"size":[{"x":1}]}`, 422, `spec.size: Invalid value: "array": spec.size in body must be of type integer: "array"`,
			`unknown field \"spec.size[0].x\"`},
		{"POST", plain, `{"color":null}`, 201, `{"size":3}`, ""},
		{"PATCH", applied, `{"free":[{"x":{"y":1},"known":{"z":2}}]}`, 201, `"free":[{"known":{},"x":{"y":1}}]`, ""},
		{"PATCH", applied, `{"fields":{"known":{"z":2},"x":{"y":1}}}`, 201, `"fields":{"known":{},"x":{"y":1}}`, ""},
		{"PATCH", applied, `{"color":null}`, 422, `spec.color: Invalid value: "null": spec.color in body must be of type string: "null"`, ""},
		{"PATCH", applied, `{"size":null,"note":null}`, 201, `{"note":null,"size":3}`, ""},
		{"STRICT", plain, `{"inner":{"apiVersion":"v1","kind":"A","metadata":{"odd":1}},"odd":1}`, 400,
			`unknown field "spec.odd", unknown field "spec.inner.metadata.odd"`, ""},
	} {
		at := path + "?dryRun=All"
		if test.method == "STRICT" {
			test.method, at = "POST", at+"&fieldValidation=Strict"
		}
		if test.method == "PATCH" {
			at = path + "/a?dryRun=All&fieldManager=m"
		}
		code, answer, header := c.call(test.method, at, widget(group+"/v1", "a", test.sent), "Content-Type", test.media)
		spec, _ := json.Marshal(answer["spec"])
		if said := string(spec) + fmt.Sprint(answer["message"]); code != test.code || !strings.Contains(said, test.has) {
			c.T.Errorf("%s %s: %d %s, and not %d %s", test.method, test.sent, code, said, test.code, test.has)
		}
		if warned := header.Get("Warning"); !strings.Contains(warned, test.warned) || test.warned == "" && warned != "" {
			c.T.Errorf("%s %s: warned %q, and not %q", test.method, test.sent, warned, test.warned)
		}
	}
}
