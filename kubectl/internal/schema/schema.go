package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/proto/rest"
)

// Type is the schema of a value.
type Type struct {
	Description string           `json:"description"`
	Type        string           `json:"type"`
	Ref         string           `json:"$ref"`
	AllOf       []*Type          `json:"allOf"`
	Properties  map[string]*Type `json:"properties"`
	Items       *Type            `json:"items"`
	// Additional is the schema of a map's values; it may also be true or false.
	Additional    json.RawMessage `json:"additionalProperties"`
	Required      []string        `json:"required"`
	Enum          []any           `json:"enum"`
	IntOrString   bool            `json:"x-kubernetes-int-or-string"`
	MergeKey      string          `json:"x-kubernetes-patch-merge-key"`
	PatchStrategy string          `json:"x-kubernetes-patch-strategy"`
	Docs          *docs           `json:"externalDocs"`

	Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// docs is where more is written about a type.
type docs struct {
	Description string `json:"description"`
	URL         string `json:"url"`
}

// Document describes the kinds of one group and version.
type Document struct {
	types    map[string]*Type
	strategy map[schema.GroupVersionKind]bool
}

// document is what is read of an OpenAPI v3 document.
type document struct {
	Paths map[string]struct {
		Patch *struct {
			Kind        schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			RequestBody struct {
				Content map[string]json.RawMessage `json:"content"`
			} `json:"requestBody"`
		} `json:"patch"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]*Type `json:"schemas"`
	} `json:"components"`
}

// Load asks for the document of a group and version.
func Load(ctx context.Context, client *rest.Client, gv schema.GroupVersion) (*Document, error) {
	path := "/openapi/v3/apis/" + gv.Group + "/" + gv.Version
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	var read document
	if err := client.Do(ctx, http.MethodGet, path, nil, &read); err != nil {
		return nil, fmt.Errorf("couldn't find the schema of %s: %w", gv, err)
	}
	d := &Document{types: read.Components.Schemas, strategy: map[schema.GroupVersionKind]bool{}}
	for _, p := range read.Paths {
		if p.Patch == nil {
			continue
		}
		if _, ok := p.Patch.RequestBody.Content["application/strategic-merge-patch+json"]; ok {
			d.strategy[p.Patch.Kind] = true
		}
	}
	return d, nil
}

// Kind is the schema of a kind's objects.
func (d *Document) Kind(kind schema.GroupVersionKind) (*Type, bool) {
	for _, t := range d.types {
		if t != nil && slices.Contains(t.Kinds, kind) {
			return t, true
		}
	}
	return nil, false
}

// Resolve follows references. The referring place's own description of the
// value stays; whole is the type referred to, if any, and name is its name.
func (d *Document) Resolve(t *Type) (whole *Type, name string) {
	ref := t.Ref
	if ref == "" && len(t.AllOf) == 1 && t.AllOf[0] != nil {
		ref = t.AllOf[0].Ref
	}
	if ref == "" {
		return t, ""
	}
	full := ref[strings.LastIndexByte(ref, '/')+1:]
	found := d.types[full]
	if found == nil {
		return t, ""
	}
	return found, full[strings.LastIndexByte(full, '.')+1:]
}

// values is the schema of a map's values; nil where there is none.
func (t *Type) values() *Type {
	if len(t.Additional) == 0 || t.Additional[0] != '{' {
		return nil
	}
	values := &Type{}
	if json.Unmarshal(t.Additional, values) != nil {
		return nil
	}
	return values
}

// Merging says by which keys the lists of a kind's objects are merged; nil for
// kinds that the server does not merge that way.
func (d *Document) Merging(kind schema.GroupVersionKind) strategicpatch.LookupPatchMeta {
	t, ok := d.Kind(kind)
	if !ok || !d.strategy[kind] {
		return nil
	}
	return &mergeSchema{d, t, kind.Kind}
}

type mergeSchema struct {
	document *Document
	of       *Type
	name     string
}

func (m *mergeSchema) Name() string { return m.name }

func (m *mergeSchema) lookup(key string) (*Type, strategicpatch.PatchMeta, error) {
	var meta strategicpatch.PatchMeta
	field := m.of.Properties[key]
	if field == nil {
		if field = m.of.values(); field == nil {
			return nil, meta, fmt.Errorf("%s has no field %q", m.name, key)
		}
	}
	if field.PatchStrategy != "" {
		meta.SetPatchStrategies(strings.Split(field.PatchStrategy, ","))
	}
	meta.SetPatchMergeKey(field.MergeKey)
	whole, _ := m.document.Resolve(field)
	return whole, meta, nil
}

// LookupPatchMetadataForStruct finds a field that is an object.
func (m *mergeSchema) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	whole, meta, err := m.lookup(key)
	if err != nil {
		return nil, meta, err
	}
	return &mergeSchema{m.document, whole, key}, meta, nil
}

// LookupPatchMetadataForSlice finds a field that is a list, and the type of its
// items.
func (m *mergeSchema) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	whole, meta, err := m.lookup(key)
	if err != nil {
		return nil, meta, err
	}
	if whole.Items != nil {
		whole, _ = m.document.Resolve(whole.Items)
	}
	return &mergeSchema{m.document, whole, key}, meta, nil
}
