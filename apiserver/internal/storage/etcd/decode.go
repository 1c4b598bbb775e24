package etcd

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/raw"
)

// Transformer changes values on their way into etcd and back.
type Transformer interface {
	Seal(ctx context.Context, key string, plain []byte) (stored []byte, err error)
	// Open undoes Seal. stale: Seal would store the value differently today.
	Open(ctx context.Context, key string, stored []byte) (plain []byte, stale bool, err error)
}

// identityTransformer is a Transformer that changes nothing.
type identityTransformer struct{}

func (identityTransformer) Seal(_ context.Context, _ string, plain []byte) ([]byte, error) {
	return plain, nil
}

func (identityTransformer) Open(_ context.Context, _ string, stored []byte) ([]byte, bool, error) {
	return stored, false, nil
}

// decode turns a stored key into an object: JSON with its resourceVersion set.
func decode(ctx context.Context, t Transformer, kv *mvccpb.KeyValue) (storage.Object, error) {
	value, stale, err := decodeValue(ctx, t, kv)
	if err != nil {
		return storage.Object{}, err
	}
	value, err = raw.SetResourceVersion(value, kv.ModRevision)
	if err != nil {
		return storage.Object{}, fmt.Errorf("%w: set resourceVersion: %w", storage.ErrUnreadable, err)
	}
	return storage.Object{Key: string(kv.Key), Value: value, Revision: kv.ModRevision, Stale: stale}, nil
}

// decodeValue returns a stored value as JSON.
func decodeValue(ctx context.Context, t Transformer, kv *mvccpb.KeyValue) (value []byte, stale bool, err error) {
	value, stale, err = t.Open(ctx, string(kv.Key), kv.Value)
	former := false
	switch {
	case err != nil:
	case bytes.HasPrefix(value, []byte(scheme.ProtobufPrefix)):
		value, former, err = protobufToJSON(value)
	case bytes.Contains(kv.Key, []byte(definitionsPath)):
		value, former, err = renewDefinition(value)
	}
	stale = stale || former
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", storage.ErrUnreadable, err)
	}
	return value, stale, nil
}

// unreadable is the object for a stored key whose value can't be read.
func unreadable(op string, kv *mvccpb.KeyValue, err error) storage.Object {
	return storage.Object{Key: string(kv.Key), Revision: kv.ModRevision, Unreadable: wrapError(op, string(kv.Key), err)}
}

// protobufToJSON turns a value that upstream stored into the JSON of the same
// object; former reports that it was stored in an older API version.
func protobufToJSON(value []byte) (_ []byte, former bool, err error) {
	object, gvk, err := scheme.Protobuf.Decode(value, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		var was schema.GroupVersionKind
		if value, was, former = renewed(value); former {
			if object, gvk, err = scheme.Protobuf.Decode(value, nil, nil); err == nil {
				upgrade(object, was)
			}
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("decode protobuf: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	out, err := scheme.Encode(object)
	if err != nil {
		return nil, false, fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	return out, former, nil
}

// written is the object that a successful write has stored.
func written(op, key string, value []byte, revision int64) (storage.Object, error) {
	stored, err := raw.AppendNewResourceVersion(make([]byte, 0, len(value)+raw.VersionLength), value, revision)
	if err != nil {
		return storage.Object{}, wrapError(op, key, err)
	}
	return storage.Object{Key: key, Value: stored, Revision: revision}, nil
}
