package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// empty: metadata without content is left out, whoever sends it in which way, in the object and
// in those embedded in it; who adds the first annotation owns the map. As kube-apiserver does.
func (c *custom) empty() {
	const group, path = "empty.test", "/apis/empty.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions = d.Spec.Versions[:1]
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["template"] = apiextensionsv1.JSONSchemaProps{Type: "object", XEmbeddedResource: true, XPreserveUnknownFields: new(true)}
	}))
	h := serveHooks(c.T)
	h.on("empty", patches(`[{"op":"add","path":"/metadata/annotations","value":{}},{"op":"add","path":"/metadata/generateName","value":""}]`))
	c.register(h, true, h.webhook("empty"))
	object := func(name, more string) string {
		return `{"apiVersion":"empty.test/v1","kind":"Widget","metadata":{"name":"` + name + `","annotations":{},"generateName":""` + more + `},
			"spec":{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{}}}}}`
	}
	for _, test := range []struct {
		name, method, path, body, media string
		code                            int
	}{
		{"created", "POST", path, object("a", ""), "application/json", 201},
		{"applied", "PATCH", path + "/b?fieldManager=m", object("b", `,"finalizers":[],"labels":{}`), "application/apply-patch+yaml", 201},
		{"applied again", "PATCH", path + "/b?fieldManager=m", object("b", `,"ownerReferences":[]`), "application/apply-patch+yaml", 200},
		{"hooked", "POST", path, object("c", `,"labels":{"hook":"empty"}`), "application/json", 201},
	} {
		metadata := c.want(test.code, test.method, test.path, test.body, "Content-Type", test.media)
		text, err := json.Marshal(metadata)
		c.Must(err)
		for _, name := range []string{`"annotations":`, `"generateName":`, `"finalizers":`, `"ownerReferences":`, `"labels":{}`} {
			if strings.Contains(string(text), name) {
				c.T.Errorf("%s: %s in %s", test.name, name, text)
			}
		}
	}
	got := c.want(200, "PATCH", path+"/b?fieldManager=other", `{"metadata":{"annotations":{"x":"y"}}}`, merge...)
	text, err := json.Marshal(got)
	c.Must(err)
	if want := `"f:annotations":{".":{},"f:x":{}}`; !strings.Contains(string(text), want) {
		c.T.Errorf("no %s in %s", want, text)
	}
}

// unreadable: a plugin that gives metadata of other types has the object refused, as by
// kube-apiserver: no client could read it, and nobody could change it again.
func (c *custom) unreadable() {
	const group, path = "unreadable.test", "/apis/unreadable.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	h := serveHooks(c.T)
	values := map[string]string{
		"labels": `{"hook":5}`, "annotations": `"x"`, "finalizers": `[5]`, "managedFields": `[{"manager":"m","time":"x"}]`,
		"ownerReferences": `[{"apiVersion":"v1","kind":"Pod","name":"n","uid":"u","controller":"yes"}]`,
	}
	var webhooks []admissionregistrationv1.MutatingWebhook
	for name, value := range values {
		hook := strings.ToLower(name)
		h.on(hook, patches(`[{"op":"add","path":"/metadata/`+name+`","value":`+value+`}]`))
		webhooks = append(webhooks, h.webhook(hook))
	}
	c.register(h, true, webhooks...)
	for name := range values {
		hook := strings.ToLower(name)
		body := `{"apiVersion":"unreadable.test/v1","kind":"Widget","metadata":{"name":"` + hook + `","labels":{"hook":"` + hook + `"}},"spec":{"size":1}}`
		for _, way := range [][2]string{{"POST", path}, {"PATCH", path + "/" + hook + "?fieldManager=m"}} {
			refusal := c.want(422, way[0], way[1], body, "Content-Type", map[string]string{"POST": "application/json", "PATCH": "application/apply-patch+yaml"}[way[0]])
			if message := fmt.Sprint(refusal["message"]); !strings.Contains(message, "metadata: Invalid value: ") {
				c.T.Errorf("%s by %s: %s", name, way[0], message)
			}
		}
		c.want(404, "GET", path+"/"+hook, nil)
	}
}

// malformed: of an object that was stored with metadata of other types, as an old server did not look
// at it, what can be read is served, and it can be changed and deleted.
func (c *custom) malformed() {
	const group, path = "malformed.test", "/apis/malformed.test/v1/namespaces/default/widgets"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		c.property(d, "spec", "pod", `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`)
	}))
	_, err := c.Server.Etcd().Put(c.T.Context(), "/registry/malformed.test/widgets/default/a",
		`{"apiVersion":"malformed.test/v1","kind":"Widget","metadata":{"name":"a","namespace":"default","uid":"u","odd":1,"labels":{"a":1},"annotations":{"b":"1"}},"spec":{"size":1,
		"pod":{"apiVersion":"v1","kind":5,"metadata":{"name":"p","odd":1,"labels":{"a":1}}}}}`)
	c.Must(err)
	var got map[string]any
	c.Until("it is read", func(context.Context) (read bool) {
		code, answer, _ := c.call("GET", path+"/a", nil)
		got = answer
		return code == 200
	})
	meta := got["metadata"].(map[string]any)
	delete(meta, "resourceVersion")
	want := map[string]any{"name": "a", "namespace": "default", "uid": "u", "generation": 1.0, "annotations": map[string]any{"b": "1"}}
	if !reflect.DeepEqual(meta, want) {
		c.T.Errorf("served with the metadata %v", meta)
	}
	pod := got["spec"].(map[string]any)["pod"]
	if want := map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "p"}}; !reflect.DeepEqual(pod, want) {
		c.T.Errorf("served with the embedded object %v", pod)
	}
	c.want(200, "PATCH", path+"/a", `{"metadata":{"labels":{"c":"1"}},"spec":{"pod":{"kind":"Pod"}}}`, merge...)
	c.want(200, "DELETE", path+"/a", nil)
	c.want(404, "GET", path+"/a", nil)
}
