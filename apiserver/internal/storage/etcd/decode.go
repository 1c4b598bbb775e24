package etcd

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/raw"
)

// envelope begins every value that upstream stored as protobuf.
var envelope = []byte("k8s\x00")

var protobufSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// decode makes an object of a stored key: JSON with resourceVersion in place.
func decode(kv *mvccpb.KeyValue) (storage.Object, error) {
	value := kv.Value
	if bytes.HasPrefix(value, envelope) {
		var err error
		if value, err = fromProtobuf(value); err != nil {
			return storage.Object{}, err
		}
	}
	value, err := raw.SetResourceVersion(value, kv.ModRevision)
	if err != nil {
		return storage.Object{}, fmt.Errorf("set resourceVersion: %w", err)
	}
	return storage.Object{Key: string(kv.Key), Value: value, Revision: kv.ModRevision}, nil
}

// fromProtobuf turns a value that upstream stored into the JSON of the same
// object.
func fromProtobuf(value []byte) ([]byte, error) {
	object, gvk, err := protobufSerializer.Decode(value, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode protobuf: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	out, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	return out, nil
}

// written is the object that a successful write leaves behind.
func written(op, key string, value []byte, revision int64) (storage.Object, error) {
	value, err := raw.SetResourceVersion(value, revision)
	if err != nil {
		return storage.Object{}, failed(op, key, err)
	}
	return storage.Object{Key: key, Value: value, Revision: revision}, nil
}
