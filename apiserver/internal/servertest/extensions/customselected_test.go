package extensions

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// converting starts a conversion webhook with this function, and returns the
// change that makes a definition use it.
func (c *custom) converting(convert func(all []*unstructured.Unstructured)) func(*apiextensionsv1.CustomResourceDefinition) {
	return c.convertingIn("v1", []string{"v1"}, convert)
}

// convertingIn is converting with a webhook that understands one version of
// ConversionReview, and a definition that says which it supports.
func (c *custom) convertingIn(version string, said []string, convert func(all []*unstructured.Unstructured)) func(*apiextensionsv1.CustomResourceDefinition) {
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if review.APIVersion != apiextensionsv1.GroupName+"/"+version {
			http.Error(w, review.APIVersion, http.StatusBadRequest)
			return
		}
		response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		var all []*unstructured.Unstructured
		for _, raw := range review.Request.Objects {
			o := &unstructured.Unstructured{}
			_ = json.Unmarshal(raw.Raw, &o.Object)
			o.SetAPIVersion(review.Request.DesiredAPIVersion)
			all = append(all, o)
		}
		convert(all)
		for _, o := range all {
			text, _ := json.Marshal(o.Object)
			response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: text})
		}
		review.Request, review.Response = nil, response
		_ = json.NewEncoder(w).Encode(review)
	}))
	c.T.Cleanup(hook.Close)
	url, authority := hook.URL, pemOf(hook.Certificate().Raw)
	return func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: authority}, ConversionReviewVersions: said,
		}}
	}
}

// selected: field selectors use the requested version's fields, even if a
// webhook makes them.
func (c *custom) selected() {
	const group = "selected.test"
	c.define(widgets(group, c.converting(func(all []*unstructured.Unstructured) {
		for _, o := range all {
			spec := o.Object["spec"].(map[string]any)
			color, _ := spec["color"].(string)
			if spec["color"] = "new-" + color; o.GetAPIVersion() == group+"/v1" {
				spec["color"] = strings.TrimPrefix(color, "new-")
			}
		}
	}), func(d *apiextensionsv1.CustomResourceDefinition) {
		second := &d.Spec.Versions[1]
		second.Schema, second.SelectableFields = d.Spec.Versions[0].Schema, d.Spec.Versions[0].SelectableFields
		d.Spec.Versions = append(d.Spec.Versions, *second.DeepCopy())
		d.Spec.Versions[2].Name, d.Spec.Versions[2].SelectableFields = "v3", nil
	}))
	path := func(version string) string { return "/apis/" + group + "/" + version + "/namespaces/default/widgets" }
	of := func(version, color string) string {
		return path(version) + "?fieldSelector=spec.color=" + color
	}
	names := func(at string) (out []string) {
		for _, item := range c.want(200, "GET", at, nil)["items"].([]any) {
			out = append(out, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
		}
		return out
	}
	early := c.watch(of("v2beta1", "new-red") + "&watch=1")
	defer early.Close()
	c.want(201, "POST", path("v1"), widget(group+"/v1", "a", `{"color":"red"}`))
	c.want(201, "POST", path("v2beta1"), widget(group+"/v2beta1", "b", `{"color":"new-red"}`))
	c.want(201, "POST", path("v1"), widget(group+"/v1", "c", `{"color":"blue"}`))
	for at, want := range map[string][]string{
		of("v1", "red"): {"a", "b"}, of("v2beta1", "new-red"): {"a", "b"}, of("v2beta1", "red"): nil, of("v1", "new-red"): nil,
		of("v2beta1", "new-blue"): {"c"}, of("v2beta1", "new-red,metadata.name=b"): {"b"},
		path("v2beta1") + "?fieldSelector=spec.color!=new-red": {"c"}, of("v2beta1", "new-blue") + "&limit=1": nil,
	} {
		if got := names(at); !slices.Equal(got, want) {
			c.T.Errorf("%s has %v, not %v", at, got, want)
		}
	}
	if answer := c.want(400, "GET", of("v3", "red"), nil); answer["message"] != "field label not supported: spec.color" {
		c.T.Errorf("by the field of another version: %v", answer["message"])
	}
	version := c.want(200, "GET", path("v1"), nil)["metadata"].(map[string]any)["resourceVersion"].(string)
	later := c.watch(of("v2beta1", "new-red") + "&watch=1&resourceVersion=" + version)
	defer later.Close()
	fresh := c.watch(of("v1", "red") + "&watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	defer fresh.Close()
	c.want(200, "PATCH", path("v1")+"/a", `{"spec":{"note":"still"}}`, merge...)
	c.want(200, "PATCH", path("v1")+"/a", `{"spec":{"color":"blue"}}`, merge...)
	c.want(200, "PATCH", path("v2beta1")+"/c", `{"spec":{"color":"new-red"}}`, merge...)
	c.want(200, "DELETE", path("v1")+"/a", nil)
	c.want(200, "DELETE", of("v2beta1", "new-red"), nil)
	if got := names(path("v1")); got != nil {
		c.T.Errorf("left are %v", got)
	}
	changes := []string{"MODIFIED a", "DELETED a", "ADDED c", "DELETED b", "DELETED c"}
	c.sees(early, "new-red", append([]string{"ADDED a", "ADDED b"}, changes...))
	c.sees(later, "new-red", changes)
	c.sees(fresh, "red", changes)
}

// sees reads events of a watch, by type and name; all objects have this color.
func (c *custom) sees(events *events, color string, want []string) {
	c.T.Helper()
	var got []string
	for range want {
		e := events.next()
		if e == nil {
			break
		}
		o := &unstructured.Unstructured{Object: e.Object}
		shown, _, _ := unstructured.NestedString(e.Object, "spec", "color")
		if got = append(got, e.Type+" "+o.GetName()); shown != color {
			c.T.Errorf("%s %s is %q", e.Type, o.GetName(), shown)
		}
	}
	if !slices.Equal(got, want) {
		c.T.Errorf("the watch saw %q, not %q", got, want)
	}
}
