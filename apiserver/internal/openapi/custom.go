package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
)

// Custom is a custom resource, whose types are known only from its definition.
type Custom struct {
	registry.Info
	ListKind string
	HasScale bool
	// Selectable are the fields by which objects can be selected.
	Selectable []string
	// Schema reads the objects' schema; nil if there is none. Mark changes with
	// it.
	Schema func() *apiextensionsv1.JSONSchemaProps
	Mark   string
}

// Source knows the custom resources, and what other servers serve. As long as
// Changed returns the same value, so do the other methods.
type Source interface {
	Changed() any
	Customs() []Custom
	Remotes() []Remote
}

// conventions is the page that upstream's descriptions point to.
const conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

// describeCustom adds a custom resource's paths and types to its group.
func (g *group) describeCustom(c Custom, d definitions) {
	meta := d.define(reflect.TypeFor[metav1.ObjectMeta]())
	listMeta := d.define(reflect.TypeFor[metav1.ListMeta]())
	labels := strings.Split(c.Group, ".")
	slices.Reverse(labels)
	for _, shared := range []reflect.Type{reflect.TypeFor[metav1.DeleteOptions](), reflect.TypeFor[metav1.Status](),
		reflect.TypeFor[metav1.Patch](), reflect.TypeFor[metav1.WatchEvent]()} {
		d.define(shared) // before a name is free for others
	}
	name := strings.Join(append(slices.Clone(labels), c.Version, c.Kind), ".")
	list := d.freeName(strings.Join(append(labels, c.Version, c.ListKind), "."))
	name = d.freeName(name)
	d[name] = &schema{
		custom:     func(v version) map[string]any { return renderCustom(c.Schema(), v, v.ref(meta)) },
		customRefs: []string{meta},
	}
	d.addKind(name, c.GVK())
	kind := c.GVK()
	kind.Kind = c.ListKind
	d[list] = &schema{
		kind: "object", description: c.ListKind + " is a list of " + c.Kind, required: []string{"items"},
		properties: map[string]*schema{
			"apiVersion": {kind: "string", description: metav1.TypeMeta{}.SwaggerDoc()["apiVersion"]},
			"kind":       {kind: "string", description: metav1.TypeMeta{}.SwaggerDoc()["kind"]},
			"metadata":   {ref: listMeta, description: "Standard list metadata. More info: " + conventions + "#types-kinds"},
			"items":      {kind: "array", description: "List of " + c.Name + ". More info: " + conventions, items: &schema{ref: name}},
		},
	}
	d.addKind(list, kind)
	if fields := c.selectableFields(); fields != nil {
		d[name].extensions[extensionSelectable], d[list].extensions[extensionSelectable] = fields, fields
	}
	b := builder{group: g, info: c.Info, definitions: d, object: &schema{ref: name}, listed: list, jsonOnly: true}
	b.addCollection()
	b.addObject()
	if c.HasStatus {
		b.addPart("status")
	}
	if c.HasScale {
		kind := autoscalingv1.SchemeGroupVersion.WithKind("Scale")
		b.object, b.kind = &schema{ref: d.define(reflect.TypeFor[autoscalingv1.Scale]())}, kind
		d.addKind(b.object.ref, kind)
		b.addPart("scale")
	}
}

// freeName is a name that no other type has, made as upstream makes it.
func (d definitions) freeName(name string) string {
	free := name
	for i := 2; d[free] != nil; i++ {
		free = fmt.Sprintf("%s_v%d", name, i)
	}
	return free
}

// selectableFields are the fields by which objects can be selected, as documents name them.
func (c *Custom) selectableFields() []any {
	var fields []any
	for _, path := range c.Selectable {
		fields = append(fields, map[string]any{"fieldPath": path})
	}
	return fields
}
