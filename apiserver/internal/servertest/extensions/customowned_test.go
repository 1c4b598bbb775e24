package extensions

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// owned: a field that one manager owns in one version, and under another name in
// another, keeps its value and its owner there; a null in a webhook's answer counts
// as omitted; and an owner in a version that is gone keeps nobody from applying.
func (c *custom) owned() {
	const group = "owned.test"
	asked := atomic.Int64{}
	c.define(widgets(group, c.converting(func(all []*unstructured.Unstructured) {
		asked.Add(1)
		for _, o := range all {
			spec, _ := o.Object["spec"].(map[string]any)
			from, to := "shade", "color"
			if o.GetAPIVersion() == group+"/v2beta1" {
				from, to = to, from
			}
			if value, ok := spec[from]; ok {
				delete(spec, from)
				spec[to] = value
			}
			if o.GetAPIVersion() == group+"/v2beta1" {
				o.Object["spec"], o.Object["status"] = spec, nil
				spec["list"], spec["note"] = nil, nil
			}
		}
	}), func(d *apiextensionsv1.CustomResourceDefinition) {
		second := &d.Spec.Versions[1]
		second.Schema = d.Spec.Versions[0].Schema.DeepCopy()
		spec := second.Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["shade"], spec.Properties["list"] = spec.Properties["color"], apiextensionsv1.JSONSchemaProps{Type: "object"}
		delete(spec.Properties, "color")
	}))
	apply := func(code int, version, manager, spec string) map[string]any {
		path := "/apis/" + group + "/" + version + "/namespaces/default/widgets/a?fieldManager=" + manager
		return c.want(code, "PATCH", path, widget(group+"/"+version, "a", spec), "Content-Type", "application/apply-patch+yaml")
	}
	apply(201, "v1", "one", `{"color":"red","size":7}`)
	conflict := apply(409, "v2beta1", "two", `{"shade":"blue"}`)
	if want := `Apply failed with 1 conflict: conflict with "one": .spec.color`; conflict["message"] != want {
		c.T.Errorf("%v, not %s", conflict["message"], want)
	}
	apply(200, "v2beta1", "two", `{"shade":"red"}`)
	left := apply(200, "v1", "one", `{"size":7}`)
	if got := fmt.Sprint(left["spec"]); got != "map[color:red note:<nil> size:7]" {
		c.T.Errorf("the other manager's field was not kept: %s", got)
	}
	c.asksOnce(group, &asked, apply)
	shown := c.want(200, "GET", "/apis/"+group+"/v2beta1/namespaces/default/widgets/a", nil)
	if got := fmt.Sprint(shown["spec"]); got != "map[note:<nil> shade:red size:7]" {
		c.T.Errorf("in the other version: %s", got)
	}
	if _, has := shown["status"]; has {
		c.T.Errorf("a null is shown: %v", shown)
	}
	c.copied(group, left)
	gone := apply(200, "v2beta1", "two", `{}`)
	if got := fmt.Sprint(gone["spec"]); got != "map[note:<nil> size:7]" {
		c.T.Errorf("what its last owner no longer applies is still there: %s", got)
	}
	apply(200, "v2beta1", "two", `{"shade":"red"}`)
	c.want(200, "PATCH", definitionsPath+"/widgets."+group, `[{"op":"remove","path":"/spec/versions/1"}]`, "Content-Type", "application/json-patch+json")
	c.Until("the version is gone", func(context.Context) bool {
		code, _, _ := c.call("GET", "/apis/"+group+"/v2beta1", nil)
		return code == http.StatusNotFound
	})
	apply(200, "v1", "one", `{"size":8}`)
}

// copied: who creates a copy with the managedFields of the original owns its fields. A webhook is
// not asked to convert the nothing that was there before.
func (c *custom) copied(group string, original map[string]any) {
	copied := &unstructured.Unstructured{Object: original}
	copied.SetName("copy")
	copied.SetResourceVersion("")
	copied.SetUID("")
	copied.Object = c.want(201, "POST", "/apis/"+group+"/v1/namespaces/default/widgets?fieldManager=restore", original)
	if got := copied.GetManagedFields(); len(got) != 1 || got[0].Manager != "restore" {
		c.T.Errorf("the owners of the copy are %v", got)
	}
}

// asksOnce: a webhook is asked once for what is there in another version, not once for each
// manager of fields there.
func (c *custom) asksOnce(group string, asked *atomic.Int64, apply func(code int, version, manager, spec string) map[string]any) {
	write := func(note string) int64 {
		before := asked.Load()
		c.want(200, "PATCH", "/apis/"+group+"/v1/namespaces/default/widgets/a?fieldManager=other", `{"spec":{"note":`+note+`}}`, merge...)
		return asked.Load() - before
	}
	forOne := write(`"x"`)
	more := []string{"three", "four", "five"}
	for _, manager := range more {
		apply(200, "v2beta1", manager, `{"shade":"red"}`)
	}
	if forFour := write(`null`); forFour != forOne {
		c.T.Errorf("with one manager of another version the webhook is asked %d times, with four %d times", forOne, forFour)
	}
	for _, manager := range more {
		apply(200, "v2beta1", manager, `{}`)
	}
}
