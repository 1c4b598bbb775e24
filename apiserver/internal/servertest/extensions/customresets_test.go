package extensions

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// resets: a spec sent in a write of the status changes nothing, and takes no
// field from those who own it in another version.
func (c *custom) resets() {
	const group = "resets.test"
	c.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[1].Schema, d.Spec.Versions[1].Subresources = d.Spec.Versions[0].Schema, d.Spec.Versions[0].Subresources
	}))
	path := func(version string) string { return "/apis/" + group + "/" + version + "/namespaces/default/widgets/a" }
	c.want(201, "PATCH", path("v1")+"?fieldManager=owner", widget(group+"/v1", "a", `{"color":"red"}`), "Content-Type", "application/apply-patch+yaml")
	got := c.want(200, "PATCH", path("v2beta1")+"/status?fieldManager=other", `{"spec":{"color":"blue"},"status":{"ready":true}}`, merge...)
	text, err := json.Marshal(got)
	c.Must(err)
	for _, want := range []string{`"f:spec":{"f:color":{}}`, `"color":"red"`, `"f:status":{`} {
		if !strings.Contains(string(text), want) {
			c.T.Errorf("no %s in %s", want, text)
		}
	}
}
