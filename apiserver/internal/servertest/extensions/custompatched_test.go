package extensions

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// patched: a patch of the status changes the status and nothing else, whatever
// object it names; other patches are refused field by field. The answers are
// kube-apiserver's.
func (c *custom) patched() {
	const group, path = "patched.test", "/apis/patched.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions = d.Spec.Versions[:1]
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		object := apiextensionsv1.JSONSchemaProps{Type: "object"}
		spec.Properties["free"] = object
		spec.Properties["frees"] = apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &object}}
		spec.Properties["either"] = apiextensionsv1.JSONSchemaProps{XIntOrString: true}
		spec.Properties["many"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", XListType: new("set"), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{XIntOrString: true}},
		}
	}))
	made := c.want(201, "POST", path, widget(group+"/v1", "a", `{"size":1}`))
	uid := made["metadata"].(map[string]any)["uid"]
	const (
		merging   = "application/merge-patch+json"
		operating = "application/json-patch+json"
		applied   = "application/apply-patch+yaml"
	)
	for _, test := range []struct {
		media, at, sent string
		code            int
		has             string
	}{
		{merging, "/a/status", `{"metadata":{"uid":"other"},"status":{"ready":true}}`, 200, "map[ready:true]"},
		{merging, "/a/status", `{"kind":"Other","status":{"ready":false}}`, 200, "map[ready:false]"},
		{merging, "/a/status", `{"apiVersion":"patched.test/v7","status":{"ready":true}}`, 200, "map[ready:true]"},
		{operating, "/a/status", `[{"op":"replace","path":"/kind","value":"Other"},{"op":"replace","path":"/status","value":{"ready":false}}]`, 200,
			"map[ready:false]"},
		{merging, "/a/status", `{"metadata":{"name":"b"}}`, 400, "does not match"},
		{merging, "/a", `{"metadata":{"uid":"other"}}`, 422, `metadata.uid: Invalid value: "other": field is immutable`},
		{merging, "/a", `{"kind":"Other"}`, 422, `Other.patched.test "a" is invalid: kind: Invalid value: "Other": must be Widget`},
		{merging, "/a", `{"apiVersion":"patched.test/v7"}`, 422,
			`Widget.patched.test "a" is invalid: apiVersion: Invalid value: "patched.test/v7": must be patched.test/v1`},
		{applied, "/b?fieldManager=m", `{"either":[1]}`, 422, `spec.either: Invalid value: "array": spec.either in body must be of type integer,string: "array"`},
		{applied, "/b?fieldManager=m", `{"either":{"x":1}}`, 422,
			`spec.either: Invalid value: "object": spec.either in body must be of type integer,string: "object"`},
		{applied, "/b?fieldManager=m", `{"either":"1","many":[1,"x"]}`, 201, `f:spec:map[f:either:map[] f:many:map[v:"x":map[] v:1:map[]]]`},
		{applied, "/b?fieldManager=m", `{"either":2,"many":["x"]}`, 200, `f:spec:map[f:either:map[] f:many:map[v:"x":map[]]]`},
		// An object whose schema has no properties accepts any field, and prunes it
		// unless the schema preserves unknown fields.
		{applied, "/c?fieldManager=m", `{"free":{"a":{"b":1}},"frees":[{"a":1}]}`, 201, `f:spec:map[f:free:map[f:a:map[.:map[] f:b:map[]]] f:frees:map[]]`},
		{applied, "/c?fieldManager=m", `{"free":{},"odd":1}`, 500, ".spec.odd: field not declared in schema"},
	} {
		body := test.sent
		if test.media == applied {
			body = widget(group+"/v1", test.at[1:2], test.sent)
		}
		code, answer, _ := c.call("PATCH", path+test.at, body, "Content-Type", test.media)
		said := fmt.Sprint(answer["message"], answer["status"], answer["metadata"])
		if code != test.code || !strings.Contains(said, test.has) {
			c.T.Errorf("%s %s: %d %s, and not %d %s", test.at, test.sent, code, said, test.code, test.has)
		}
		if code == 200 && strings.HasPrefix(test.at, "/a") && (answer["kind"] != "Widget" || answer["metadata"].(map[string]any)["uid"] != uid) {
			c.T.Errorf("%s %s: made it %v %v", test.at, test.sent, answer["kind"], answer["metadata"])
		}
	}
}
