package etcd

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/encrypt"
	"kctl/apiserver/internal/storage/raw"
	"kctl/proto/core"
)

// Transformer changes values on their way into etcd and back.
type Transformer interface {
	Seal(ctx context.Context, key string, plain []byte) (stored []byte, err error)
	// Open undoes Seal. stale: Seal would store the value differently today.
	Open(ctx context.Context, key string, stored []byte) (plain []byte, stale bool, err error)
}

// Forms turn objects of kinds that are only shown here, but that etcd may hold, into
// those that are stored.
type Forms map[schema.GroupVersionKind]func(shown core.Object) (stored core.Object, err error)

// values reads and seals stored values.
type values struct {
	Transformer
	forms Forms
	// others are the versions in which JSON may be that is not in the stored form.
	others sets.Set[string]
}

func newValues(transformer Transformer, forms Forms) values {
	if transformer == nil {
		transformer = encrypt.None{}
	}
	others := sets.New[string]()
	for kind := range forms {
		others.Insert(kind.GroupVersion().String())
	}
	for group, versions := range formerVersions {
		for _, version := range versions {
			others.Insert(group + "/" + version)
		}
	}
	return values{transformer, forms, others}
}

// object turns a stored key into an object: JSON with its resourceVersion set.
func (v values) object(ctx context.Context, kv *mvccpb.KeyValue) (storage.Object, error) {
	value, stale, err := v.decode(ctx, kv)
	if err != nil {
		return storage.Object{}, err
	}
	if err = raw.Check(value); err == nil {
		value, err = raw.SetResourceVersion(value, kv.ModRevision)
	}
	if err != nil {
		return storage.Object{}, fmt.Errorf("%w: set resourceVersion: %w", storage.ErrUnreadable, err)
	}
	return storage.Object{Key: string(kv.Key), Value: value, Revision: kv.ModRevision, Stale: stale}, nil
}

// decode returns a stored value as JSON, which may be broken if it was so in etcd. stale: it
// would be stored differently today.
func (v values) decode(ctx context.Context, kv *mvccpb.KeyValue) (value []byte, stale bool, err error) {
	value, stale, err = v.Open(ctx, string(kv.Key), kv.Value)
	other := false
	switch {
	case err != nil:
	case bytes.HasPrefix(value, []byte(scheme.ProtobufPrefix)):
		value, other, err = v.protobufToJSON(value)
	case bytes.Contains(kv.Key, []byte(definitionsPath)):
		value, other, err = renewDefinition(value)
	case v.others.Has(string(raw.APIVersion(value))):
		value, other, err = v.jsonToStored(value)
	}
	stale = stale || other
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
// object; other reports that it was stored in another form.
func (v values) protobufToJSON(value []byte) (_ []byte, other bool, err error) {
	object, gvk, err := scheme.Protobuf.Decode(value, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		var was schema.GroupVersionKind
		if value, was, other = renewed(value); other {
			if object, gvk, err = scheme.Protobuf.Decode(value, nil, nil); err == nil {
				upgrade(object, was)
			}
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("decode protobuf: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	if stored, isForm, err := v.stored(object); err != nil {
		return nil, false, err
	} else if isForm {
		object, other = stored, true
	}
	out, err := scheme.Encode(object)
	if err != nil {
		return nil, false, fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	return out, other, nil
}

// stored turns an object of one of the forms into the kind that is stored.
func (v values) stored(object runtime.Object) (stored runtime.Object, isForm bool, err error) {
	toStored, isForm := v.forms[object.GetObjectKind().GroupVersionKind()]
	if !isForm {
		return nil, false, nil
	}
	stored, err = toStored(object.(core.Object))
	if err != nil {
		return nil, false, fmt.Errorf("%s in another form: %w", object.GetObjectKind().GroupVersionKind(), err)
	}
	return stored, true, nil
}

// jsonToStored is protobufToJSON for JSON in one of the other versions, as kube-apiserver
// stores with --storage-media-type=application/json.
func (v values) jsonToStored(value []byte) (_ []byte, other bool, err error) {
	var head metav1.TypeMeta
	if err := core.Decode(value, &head); err != nil {
		return nil, false, fmt.Errorf("decode JSON: %w", err)
	}
	was := head.GroupVersionKind()
	is := was
	if slices.Contains(formerVersions[was.Group], was.Version) {
		is.Version = "v1"
	}
	object, err := scheme.Scheme.New(is)
	if err != nil || otherForm[was.GroupKind()] || v.forms[is] == nil && is == was {
		return value, false, nil // a custom resource, or a kind that has only this version
	}
	if err := core.Decode(value, object); err != nil {
		return nil, false, fmt.Errorf("decode JSON: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(is)
	upgrade(object, was)
	if stored, isForm, err := v.stored(object); err != nil {
		return nil, false, err
	} else if isForm {
		object = stored
	}
	out, err := scheme.Encode(object)
	if err != nil {
		return nil, false, fmt.Errorf("encode %s: %w", is.Kind, err)
	}
	return out, true, nil
}

// written is the object that a successful write has stored.
func written(op, key string, value []byte, revision int64) (storage.Object, error) {
	stored, err := raw.AppendNewResourceVersion(make([]byte, 0, len(value)+raw.VersionLength), value, revision)
	if err != nil {
		return storage.Object{}, wrapError(op, key, err)
	}
	return storage.Object{Key: key, Value: stored, Revision: revision}, nil
}
