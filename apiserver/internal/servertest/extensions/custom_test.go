package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// custom is a cluster with helpers for custom resources.
type custom struct{ *cluster }

// call sends JSON, or a patch, and returns the answer's code and body.
func (c *custom) call(method, path string, body any, header ...string) (int, map[string]any, http.Header) {
	c.T.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			c.T.Fatal(err)
		}
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	answer, content := c.Ask(method, path, h, text)
	var into map[string]any
	_ = json.Unmarshal(content, &into)
	return answer.StatusCode, into, answer.Header
}

func (c *custom) want(code int, method, path string, body any, header ...string) map[string]any {
	c.T.Helper()
	got, content, _ := c.call(method, path, body, header...)
	if got != code {
		c.T.Fatalf("%s %s: %d instead of %d: %v", method, path, got, code, content)
	}
	return content
}

// merge is the header of a merge patch.
var merge = []string{"Content-Type", "application/merge-patch+json"}

// widgets is a definition with two versions.
func widgets(group string, change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	schema := func(text string) *apiextensionsv1.CustomResourceValidation {
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := json.Unmarshal([]byte(text), props); err != nil {
			panic(err)
		}
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props}
	}
	d := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget", ShortNames: []string{"wd"}, Categories: []string{"all"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: schema(`{"type":"object","description":"a widget","properties":{
					"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1,"default":3},"color":{"type":"string"},"note":{"type":"string","nullable":true}}},
					"status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}}`),
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Size", Type: "integer", JSONPath: ".spec.size"}},
				SelectableFields:         []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}},
			}, {
				Name: "v2beta1", Served: true, Deprecated: true,
				Schema: schema(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`),
			}},
		},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

// define creates a definition and waits until it is established.
func (c *custom) define(d *apiextensionsv1.CustomResourceDefinition) {
	c.T.Helper()
	c.want(http.StatusCreated, "POST", definitionsPath, d)
	c.Until(d.Name+" is established", func(context.Context) bool { return c.condition(d.Name, "Established") == "True" })
}

func (c *custom) condition(name, kind string) string {
	_, got, _ := c.call("GET", definitionsPath+"/"+name, nil)
	conditions, _, _ := unstructured.NestedSlice(got, "status", "conditions")
	for _, one := range conditions {
		if m := one.(map[string]any); m["type"] == kind {
			return m["status"].(string)
		}
	}
	return ""
}

func widget(apiVersion, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"Widget","metadata":{"name":%q},"spec":%s}`, apiVersion, name, spec)
}
