package customresources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
)

// decodeBody reads what a client sent.
func (f *compiledVersion) decodeBody(body []byte) (*object, []error, error) {
	var content map[string]any
	strict, err := kjson.UnmarshalStrict(body, &content)
	if err != nil || content == nil {
		if err == nil {
			err = fmt.Errorf("json: it is null")
		}
		return nil, nil,
			apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): couldn't get "+
				"version/kind; json parse error: %v", f.kind, err))
	}
	for _, name := range []string{"kind", "apiVersion"} {
		if text, _ := content[name].(string); text == "" {
			return nil, nil,
				apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): Object '%s' is missing in '%s'",
					f.kind, missingFields[name], truncate(body)))
		}
	}
	o := &object{Object: content}
	unknown, embedded, err := f.schema.Coerce(content)
	if err != nil {
		return nil, nil, err
	}
	unknown = append(unknown, f.prune(content, true)...)
	f.complete(content)
	for _, path := range append(unknown, embedded...) {
		strict = append(strict, fmt.Errorf("unknown field %q", path))
	}
	return o, strict, nil
}

var missingFields = map[string]string{"kind": "Kind", "apiVersion": "apiVersion"}

// truncate returns the beginning of a body, for a message.
func truncate(body []byte) []byte {
	const enough = 256
	if len(body) > enough {
		return append(bytes.Clone(body[:enough]), " ..."...)
	}
	return body
}

// encode returns an object of one version in its stored form.
func (c *converter) encode(f, storage *compiledVersion, o *object) ([]byte, error) {
	if f != storage {
		converted, err := c.convert(c.ctx, storage, o)
		if err != nil {
			return nil, err
		}
		converted.SetResourceVersion("")
		f, o = storage, converted
	}
	// Malformed metadata, as others may have stored, is kept: the object can still be deleted.
	_ = f.schema.Settle(o.Object)
	return marshal(o)
}

// settle brings the metadata of an object that was changed since it was decoded into its
// proper form: a merge leaves empty maps where the applied object has some.
func (f *compiledVersion) settle(o *object) error {
	if err := f.schema.Settle(o.Object); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func marshal(o *object) ([]byte, error) {
	value, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.GetKind(), err)
	}
	return value, nil
}

func unmarshal(value []byte) (*object, error) {
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &content); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return &object{Object: content}, nil
}

// decodeStored reads an object as one of the version in which it is stored.
func (c *converter) decodeStored(value []byte) (*object, error) {
	o, err := unmarshal(value)
	if err != nil {
		return nil, err
	}
	if from := c.versionOf(o); from != nil {
		from.normalize(o)
	}
	return o, nil
}

// decode reads a stored object of any version as one of f's.
func (c *converter) decode(f *compiledVersion, value []byte) (*object, error) {
	o, err := c.decodeStored(value)
	if err != nil || o.GetAPIVersion() == f.apiVersion() {
		return o, err
	}
	return c.convert(c.ctx, f, o)
}

// normalizeStored returns a stored value defaulted and pruned by its version's schema, which
// may have changed since.
func (c *converter) normalizeStored(value []byte) []byte {
	if f := c.versionIn(value); f != nil && f.isNormal(value) {
		return value
	}
	o, err := unmarshal(value)
	if err != nil {
		return value
	}
	f := c.versionOf(o)
	if f == nil {
		return value
	}
	before := o.DeepCopy()
	f.normalize(o)
	if reflect.DeepEqual(before.Object, o.Object) {
		return value
	}
	if made, err := marshal(o); err == nil {
		return made
	}
	return value
}
