package typecheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// document is what is needed of an OpenAPI v3 document.
type document struct {
	root       string // the paths' common beginning
	Paths      map[string]pathItem
	Components struct {
		Schemas map[string]*node
	}
}

type pathItem struct{ Get, Post *operation }

type operation struct {
	Kind *metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// node is a schema.
type node struct {
	Ref         string `json:"$ref"`
	AllOf       []node
	Type        string
	Format      string
	Items       *node
	Properties  map[string]*node
	Values      *nodeOrBool               `json:"additionalProperties"`
	IntOrString bool                      `json:"x-kubernetes-int-or-string"`
	Embedded    bool                      `json:"x-kubernetes-embedded-resource"`
	Kinds       []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// nodeOrBool is a schema; nil for a boolean.
type nodeOrBool struct{ of *node }

func (n *nodeOrBool) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	return json.Unmarshal(data, &n.of)
}

func readDocument(gv schema.GroupVersion, text []byte) (*document, error) {
	d := &document{root: "/apis/" + gv.String() + "/"}
	if gv.Group == "" {
		d.root = "/api/" + gv.Version + "/"
	}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("read the description of %s: %w", gv, err)
	}
	return d, nil
}

// kindOf is the kind of a resource, as its paths have it.
func (d *document) kindOf(resource string) (schema.GroupVersionKind, bool) {
	for _, path := range []string{d.root + resource, d.root + "namespaces/{namespace}/" + resource} {
		item := d.Paths[path]
		for _, o := range []*operation{item.Post, item.Get} {
			if o != nil && o.Kind != nil {
				return schema.GroupVersionKind(*o.Kind), true
			}
		}
	}
	return schema.GroupVersionKind{}, false
}

// typeOf is the type of a kind, under a name for messages; nil if it is not described.
func (d *document) typeOf(kind schema.GroupVersionKind, name string) *apiservercel.DeclType {
	for _, n := range d.Components.Schemas {
		if slices.Contains(n.Kinds, metav1.GroupVersionKind(kind)) {
			if t := d.declare(n, true, nil); t != nil {
				return t.MaybeAssignTypeName(name)
			}
		}
	}
	return nil
}

const refPrefix = "#/components/schemas/"

// resolve follows the reference that a node is, alone or, with a description beside it, in allOf.
func (d *document) resolve(n *node) (resolved *node, ref string) {
	ref = n.Ref
	for i := range n.AllOf {
		if ref == "" {
			ref = n.AllOf[i].Ref
		}
	}
	if ref == "" {
		return n, ""
	}
	return d.Components.Schemas[strings.TrimPrefix(ref, refPrefix)], ref
}

// declare makes the type of a schema; nil for one without a type, whose field is unknown then, as
// in upstream. Inside of itself, a type is an object without fields.
func (d *document) declare(n *node, root bool, inside []string) *apiservercel.DeclType {
	n, ref := d.resolve(n)
	switch {
	case n == nil:
		return nil
	case ref != "" && slices.Contains(inside, ref):
		return apiservercel.NewObjectType("object", map[string]*apiservercel.DeclField{})
	case ref != "":
		inside = append(slices.Clip(inside), ref)
	}
	switch {
	case n.IntOrString || n.Format == "int-or-string":
		return apiservercel.DynType
	case n.Type == "array" && n.Items != nil:
		if items := d.declare(n.Items, n.Items.Embedded, inside); items != nil {
			return apiservercel.NewListType(items, -1)
		}
		return nil
	case n.Type == "object" && n.Values != nil && n.Values.of != nil:
		if values := d.declare(n.Values.of, n.Values.of.Embedded, inside); values != nil {
			return apiservercel.NewMapType(apiservercel.StringType, values, -1)
		}
		return nil
	case n.Type == "object":
		return d.declareObject(n, root, inside)
	}
	return scalarType(n)
}

func (d *document) declareObject(n *node, root bool, inside []string) *apiservercel.DeclType {
	fields := map[string]*apiservercel.DeclField{}
	add := func(name string, t *apiservercel.DeclType) {
		if escaped, ok := apiservercel.Escape(name); ok && t != nil {
			fields[escaped] = apiservercel.NewDeclField(escaped, t, false, nil, nil)
		}
	}
	if root { // what every object has
		add("apiVersion", apiservercel.StringType)
		add("kind", apiservercel.StringType)
		metadata := &node{Properties: map[string]*node{"name": {Type: "string"}, "generateName": {Type: "string"}}}
		add("metadata", d.declareObject(metadata, false, nil))
	}
	for name, property := range n.Properties {
		if t := d.declare(property, property.Embedded, inside); t != nil && (name != "metadata" || !root || len(t.Fields) > 0) {
			add(name, t)
		}
	}
	return apiservercel.NewObjectType("object", fields)
}

func scalarType(n *node) *apiservercel.DeclType {
	switch n.Type {
	case "string":
		switch n.Format {
		case "byte":
			return apiservercel.BytesType
		case "duration":
			return apiservercel.DurationType
		case "date", "date-time":
			return apiservercel.TimestampType
		}
		return apiservercel.StringType
	case "boolean":
		return apiservercel.BoolType
	case "number":
		return apiservercel.DoubleType
	case "integer":
		return apiservercel.IntType
	}
	return nil
}
