package handlers

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
)

// message is an object that has a protobuf form.
type message interface{ Marshal() ([]byte, error) }

// The numbers of the fields of runtime.Unknown, which surrounds every object, of lists of all
// kinds, and of metav1.WatchEvent.
const (
	unknownType, unknownRaw, unknownEncoding, unknownContentType protowire.Number = 1, 2, 3, 4

	listMetadata, listItem protowire.Number = 1, 2

	eventType, eventObject, rawExtension protowire.Number = 1, 2, 1
)

// protobufObject is a stored object as a protobuf message without the kind around it.
func (c *call) protobufObject(f form, e registry.Encoded) ([]byte, error) {
	encode := func() ([]byte, error) { return c.encodeProtobuf(f, e) }
	if c.converted { // seldom are the bytes those that another reader gets
		return encode()
	}
	return c.Encodings.of(e, c.resource.GVK(), f, encode)
}

func isConverted(info registry.Info) bool { return info.StoredAs != info.GVK() }

func (c *call) encodeProtobuf(f form, e registry.Encoded) ([]byte, error) {
	obj, err := c.inForm(f, e)
	if err != nil {
		return nil, err
	}
	encodable, ok := obj.(message)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", obj)
	}
	text, err := encodable.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode as protobuf: %w", err)
	}
	return text, nil
}

// protobufList is a list in protobuf.
func (c *call) protobufList(f form, list registry.List) ([][]byte, error) {
	kind := c.listType()
	if f.as == asMetadata {
		kind = typeOf(f, asMetadata+"List")
	}
	objects := make([][]byte, len(list.Items))
	for i, item := range list.Items {
		var err error
		if objects[i], err = c.protobufObject(f, item); err != nil {
			return nil, err
		}
	}
	return protobufParts(kind, listMeta(list), objects)
}

// protobufParts are what surrounds a list, and its objects, each after its length.
func protobufParts(kind metav1.TypeMeta, about metav1.ListMeta, objects [][]byte) ([][]byte, error) {
	metadata, err := about.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode the metadata of a list: %w", err)
	}
	size := protowire.SizeTag(listMetadata) + protowire.SizeBytes(len(metadata))
	for _, object := range objects {
		size += protowire.SizeTag(listItem) + protowire.SizeBytes(len(object))
	}
	head, err := unknownHead(kind, size)
	if err != nil {
		return nil, err
	}
	head = protowire.AppendTag(head, listMetadata, protowire.BytesType)
	head = protowire.AppendBytes(head, metadata)
	parts := append(make([][]byte, 0, 2*len(objects)+2), head)
	lengths := make([]byte, 0, len(objects)*(protowire.SizeTag(listItem)+protowire.SizeVarint(uint64(size)))) // enough for all
	for _, object := range objects {
		from := len(lengths)
		lengths = protowire.AppendTag(lengths, listItem, protowire.BytesType)
		lengths = protowire.AppendVarint(lengths, uint64(len(object)))
		parts = append(parts, lengths[from:], object)
	}
	return append(parts, unknownTail), nil
}

// protobufEvent is an event of a watch, preceded by its length.
func (c *call) protobufEvent(f form, event registry.WatchEvent) ([]byte, error) {
	object, err := c.protobufObject(f, event.Object)
	if err != nil {
		return nil, err
	}
	kind := c.itemType()
	if f.as == asMetadata {
		kind = typeOf(f, asMetadata)
	}
	head, err := unknownHead(kind, len(object))
	if err != nil {
		return nil, err
	}
	return framed(event.Type, head, object, unknownTail), nil
}

// framed is an event whose object is made of parts, preceded by its length.
func framed(kind string, parts ...[]byte) []byte {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	extension := protowire.SizeTag(rawExtension) + protowire.SizeBytes(size)
	length := protowire.SizeTag(eventType) + protowire.SizeBytes(len(kind)) + protowire.SizeTag(eventObject) + protowire.SizeBytes(extension)
	out := binary.BigEndian.AppendUint32(make([]byte, 0, lengthBytes+length), uint32(length))
	out = protowire.AppendTag(out, eventType, protowire.BytesType)
	out = protowire.AppendString(out, kind)
	out = protowire.AppendTag(out, eventObject, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(extension))
	out = protowire.AppendTag(out, rawExtension, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(size))
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

// unknownHead is what precedes an object of the given size: the prefix of protobuf objects, and
// their kind.
func unknownHead(kind metav1.TypeMeta, size int) ([]byte, error) {
	about, err := (&runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}).Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode a kind: %w", err)
	}
	head := []byte(scheme.ProtobufPrefix)
	head = protowire.AppendTag(head, unknownType, protowire.BytesType)
	head = protowire.AppendBytes(head, about)
	head = protowire.AppendTag(head, unknownRaw, protowire.BytesType)
	return protowire.AppendVarint(head, uint64(size)), nil
}

// lengthBytes precede each event in protobuf, big-endian.
const lengthBytes = 4

// unknownTail follows an object: it has no content type and encoding of its own.
var unknownTail = []byte{byte(unknownEncoding)<<3 | byte(protowire.BytesType), 0, byte(unknownContentType)<<3 | byte(protowire.BytesType),
	0}
