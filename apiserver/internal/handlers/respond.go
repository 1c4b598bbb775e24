package handlers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
)

// metaScheme knows the kinds as which objects of any kind can be sent.
var metaScheme = newMetaScheme()

func newMetaScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	if err := metav1.AddMetaToScheme(s); err != nil {
		panic(err) // only if two types claim one kind
	}
	return s
}

var protobufMeta = protobuf.NewSerializer(metaScheme, metaScheme)

// respond answers with one object in the negotiated form.
func (c *call) respond(code int, e registry.Encoded) error {
	f, err := c.negotiate()
	if err != nil {
		return err
	}
	if f.plain() {
		c.write(code, runtime.ContentTypeJSON, e.JSON, []byte("\n"))
		return nil
	}
	body, err := c.transform(f, e)
	if err != nil {
		return err
	}
	c.write(code, f.media, body)
	return nil
}

// transform converts a stored object into another form.
func (c *call) transform(f form, e registry.Encoded) ([]byte, error) {
	switch {
	case f.as == asTable:
		table, err := c.table(f, []registry.Encoded{e})
		if err != nil {
			return nil, err
		}
		table.ResourceVersion = fmt.Sprint(e.Revision)
		return marshal(f, table)
	case f.as == asMetadata, f.media == runtime.ContentTypeProtobuf:
		obj, err := c.inForm(f, e)
		if err != nil {
			return nil, err
		}
		return marshal(f, obj)
	}
	return reformat(f, e.JSON)
}

// inForm is a stored object as the type that the client wants.
func (c *call) inForm(f form, e registry.Encoded) (runtime.Object, error) {
	if f.as == asMetadata {
		return partialOf(f, e)
	}
	return c.store.Decode(e)
}

// marshal encodes an object, whose kind is set, as f.media.
func marshal(f form, obj runtime.Object) ([]byte, error) {
	if f.media == runtime.ContentTypeProtobuf {
		serializer := scheme.Protobuf
		if f.as != "" {
			serializer = protobufMeta
		}
		out, err := runtime.Encode(serializer, obj)
		if err != nil {
			return nil, fmt.Errorf("encode as protobuf: %w", err)
		}
		return out, nil
	}
	text, err := scheme.Encode(obj)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return reformat(f, text)
}

// partialOf reads only the metadata of a stored object.
func partialOf(f form, e registry.Encoded) (*metav1.PartialObjectMetadata, error) {
	partial := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(e.JSON, partial); err != nil {
		return nil, fmt.Errorf("decode metadata: %w", err)
	}
	partial.TypeMeta = typeOf(f, asMetadata)
	return partial, nil
}

// typeOf is one of the kinds as which objects of any kind can be sent.
func typeOf(f form, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: metav1.GroupName + "/" + f.group}
}

// respondObject answers with an object that is not of the resource's kind.
func (c *call) respondObject(code int, obj runtime.Object) error {
	f, err := c.negotiate()
	if err != nil {
		return err
	}
	if obj.GetObjectKind().GroupVersionKind().Empty() {
		kinds, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			return fmt.Errorf("kind of the answer: %w", err)
		}
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	f.as = ""
	body, err := marshal(f, obj)
	if err != nil {
		return err
	}
	c.write(code, f.media, body)
	return nil
}

// respondList answers with a page of a collection.
func (c *call) respondList(list registry.List) error {
	f, err := c.negotiate()
	if err != nil {
		return err
	}
	if f.plain() {
		parts, err := c.listParts(list)
		if err != nil {
			return err
		}
		c.write(200, runtime.ContentTypeJSON, parts...)
		return nil
	}
	parts, err := c.convertList(f, list)
	if err != nil {
		return err
	}
	c.write(200, f.media, parts...)
	return nil
}

// convertList is a list in another form than that in which it is stored.
func (c *call) convertList(f form, list registry.List) ([][]byte, error) {
	leave, err := c.Conversions.Enter(c.ctx, list.Items)
	if err != nil {
		return nil, err
	}
	defer leave()
	switch {
	case f.media == runtime.ContentTypeProtobuf:
		return c.protobufList(f, list)
	case f.as == asTable:
		table, err := c.table(f, list.Items)
		if err != nil {
			return nil, err
		}
		table.ListMeta = listMeta(list)
		return whole(marshal(f, table))
	case f.as == asMetadata:
		partial, err := partialList(f, list)
		if err != nil {
			return nil, err
		}
		return whole(marshal(f, partial))
	}
	parts, err := c.listParts(list)
	if err != nil {
		return nil, err
	}
	return whole(reformat(f, bytes.Join(parts, nil)))
}

// whole is a body of one part.
func whole(body []byte, err error) ([][]byte, error) { return [][]byte{body}, err }

var (
	listComma      = []byte(",")
	listBrace      = []byte("{")
	listCommaBrace = []byte(",{")
	listEnd        = []byte("]}\n")
)

// listParts is a list in JSON: a head, and the stored objects between commas.
// Only the list has a kind, as in upstream's typed lists: clients compare the
// objects with ones without a kind.
func (c *call) listParts(list registry.List) ([][]byte, error) {
	head := struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        any `json:"metadata"`
	}{c.listType(), listMeta(list)}
	if c.jsonOnly { // such lists mark the last page
		head.Metadata = struct {
			Continue        string `json:"continue"`
			Remaining       *int64 `json:"remainingItemCount,omitempty"`
			ResourceVersion string `json:"resourceVersion"`
		}{list.Continue, list.Remaining, list.ResourceVersion}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encode list: %w", err)
	}
	kind, err := c.kindOfItems()
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, 0, 2*len(list.Items)+2)
	parts = append(parts, append(text[:len(text)-1], `,"items":[`...))
	for i, item := range list.Items {
		object, named := bytes.CutPrefix(item.JSON, kind)
		if c.jsonOnly { // each custom resource has its own
			object, named = item.JSON, false
		}
		parts = append(parts, beforeItem(i, named), object)
	}
	return append(parts, listEnd), nil
}

// beforeItem precedes an object of a list, with the brace that was cut off with
// its kind: each part that is written separately costs time.
func beforeItem(i int, brace bool) []byte {
	switch {
	case i == 0 && brace:
		return listBrace
	case i == 0:
		return nil
	case brace:
		return listCommaBrace
	}
	return listComma
}

// kindOfItems is the beginning of all stored objects: their kind and version.
func (c *call) kindOfItems() ([]byte, error) {
	text, err := json.Marshal(c.itemType())
	if err != nil {
		return nil, fmt.Errorf("encode the kind of the items: %w", err)
	}
	return append(text[:len(text)-1], ','), nil
}

func (c *call) itemType() metav1.TypeMeta {
	apiVersion, kind := c.resource.GVK().ToAPIVersionAndKind()
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
}

func (c *call) listType() metav1.TypeMeta {
	list := c.itemType()
	list.Kind = cmp.Or(c.store.Info().ListKind, list.Kind+"List")
	return list
}

func listMeta(list registry.List) metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: list.ResourceVersion, Continue: list.Continue, RemainingItemCount: list.Remaining}
}

func partialList(f form, list registry.List) (*metav1.PartialObjectMetadataList, error) {
	out := &metav1.PartialObjectMetadataList{
		TypeMeta: typeOf(f, asMetadata+"List"),
		ListMeta: listMeta(list),
		Items:    make([]metav1.PartialObjectMetadata, len(list.Items)),
	}
	for i, item := range list.Items {
		partial, err := partialOf(f, item)
		if err != nil {
			return nil, err
		}
		out.Items[i] = *partial
	}
	return out, nil
}
