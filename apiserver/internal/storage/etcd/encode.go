package etcd

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// protobufAbove is the size of values in bytes above which they are stored in protobuf, if that is
// shorter. In JSON, an object can take six times as many bytes as in protobuf, in which upstream stores
// all: one that fits into etcd there (1.5 MiB, unless told otherwise) has to fit here as well
// (docs/decisions/0019-large-objects-in-protobuf.md).
const protobufAbove = 1 << 20

// encode returns value, an object in JSON, as it is stored. Whatever protobuf would lose of it stays
// in JSON, as do custom resources.
func (v values) encode(value []byte) []byte {
	if len(value) <= protobufAbove {
		return value
	}
	short, err := jsonToProtobuf(value)
	if err != nil || len(short) >= len(value) {
		return value
	}
	if same, other, err := v.protobufToJSON(short); err != nil || other || !bytes.Equal(same, value) {
		return value
	}
	return short
}

// jsonToProtobuf fails for kinds that have no protobuf.
func jsonToProtobuf(value []byte) ([]byte, error) {
	var head metav1.TypeMeta
	if err := core.Decode(value, &head); err != nil {
		return nil, err
	}
	object, err := scheme.Scheme.New(head.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := core.Decode(value, object); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = scheme.Protobuf.Encode(object, &out)
	return out.Bytes(), err
}
