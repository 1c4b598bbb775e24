package openapi

import (
	"reflect"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// customs is a source of custom resources only.
type customs []Custom

func (c customs) Changed() any      { return len(c) }
func (c customs) Customs() []Custom { return c }
func (c customs) Remotes() []Remote { return nil }

func custom(group, plural, kind string) Custom {
	return Custom{
		Info:     registry.Info{Resource: core.Resource{Group: group, Version: "v1", Name: plural, Kind: kind, Namespaced: true}},
		ListKind: kind + "List",
		Schema: func() *apiextensionsv1.JSONSchemaProps {
			return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"odd": {Type: "string"}}}
		},
	}
}

// TestCustomResourcesReplaceNothing: neither the paths of a built-in resource, which is the one
// that is served there, nor types that have the same name.
func TestCustomResourcesReplaceNothing(t *testing.T) {
	const lease, options = "io.k8s.api.coordination.v1.Lease", "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
	all := customs{
		custom("coordination.k8s.io", "leases", "Lease"), custom("coordination.api.k8s.io", "leases", "Lease"),
		custom("meta.apis.pkg.apimachinery.k8s.io", "deleteoptions", "DeleteOptions"),
	}
	plain := decoded(t, get(t, New(entries(), nil, "v1", time.Now()), "/openapi/v2"))
	grown := New(entries(), nil, "v1", time.Now()).Follow(all)
	doc := decoded(t, get(t, grown, "/openapi/v2"))
	for _, part := range []string{"paths", "definitions"} {
		for name, was := range plain[part].(map[string]any) {
			is := doc[part].(map[string]any)[name]
			if name == options { // which every group has
				was, is = at(t, was, "properties"), at(t, is, "properties")
			}
			if !reflect.DeepEqual(was, is) {
				t.Errorf("%s has changed", name)
			}
		}
	}
	at(t, doc, "definitions", lease+"_v2", "properties", "odd")
	if got := at(t, doc, "definitions", lease+"List_v2", "properties", "items", "items", "$ref"); got != "#/definitions/"+lease+"_v2" {
		t.Errorf("the list is one of %v", got)
	}
	third := decoded(t, get(t, grown, "/openapi/v3/apis/meta.apis.pkg.apimachinery.k8s.io/v1"))
	at(t, third, "components", "schemas", options, "properties", "gracePeriodSeconds")
	at(t, third, "components", "schemas", options+"_v2", "properties", "odd")
	for path := range at(t, doc, "paths").(map[string]any) {
		if strings.HasPrefix(path, "/apis/coordination.api.k8s.io/v1/") {
			return
		}
	}
	t.Error("a resource with a type of the same name is not described")
}
