package registry

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// encode returns obj as it is stored, with its kind and without a
// resourceVersion; it sets both in obj.
func (s *Store[T]) encode(obj T) ([]byte, error) {
	obj.GetObjectKind().SetGroupVersionKind(s.strategy.Resource.GVK())
	obj.SetResourceVersion("")
	if s.strategy.Normalize != nil {
		s.strategy.Normalize(obj)
	}
	if s.strategy.Encoding != nil {
		return s.strategy.Encoding.Encode(obj)
	}
	value, err := scheme.Encode(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", s.strategy.Resource.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return value, s.checkTimes(value)
}

// timeEnd is how a time ends as it is stored, in UTC, and hardly any other text.
var timeEnd = []byte(`Z"`)

// mayHaveStrangeYear reports whether a text is as a time would be whose year has not four digits, which
// can be written and not be read. Protobuf has such years, and, with a time zone, the last and the first
// hours of those that JSON has are in the years after and before.
func mayHaveStrangeYear(value []byte) bool {
	for {
		before, after, found := bytes.Cut(value, timeEnd)
		if !found {
			return false
		}
		text := before[bytes.LastIndexByte(before, '"')+1:]
		year, rest, _ := bytes.Cut(text, []byte("-"))
		if len(year) != len("2006") && bytes.Count(rest, []byte(":")) == 2 {
			return true
		}
		value = after
	}
}

// checkTimes refuses an object that nobody could read back, nor therefore delete.
func (s *Store[T]) checkTimes(value []byte) error {
	if !mayHaveStrangeYear(value) { // decoding each would take longer than all else in its request
		return nil
	}
	if _, err := s.decode(value); err != nil { // else it was another text
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// decode returns a stored object with its defaults filled in: the version that
// stored it may not have known every field.
func (s *Store[T]) decode(value []byte) (T, error) {
	if s.strategy.Encoding != nil {
		return s.strategy.Encoding.Decode(value)
	}
	obj := s.strategy.New()
	if err := core.Decode(value, obj); err != nil {
		return obj, fmt.Errorf("decode %s: %w", s.strategy.Resource.Kind, err)
	}
	if s.strategy.Default != nil {
		s.strategy.Default(obj)
	}
	return obj, nil
}

// DecodeBody reads what a client sent, where the strategy has an Encoding.
func (s *Store[T]) DecodeBody(body []byte) (obj core.Object, strict []error, err error) {
	return s.strategy.Encoding.DecodeBody(body)
}

// Decode implements Resource. The caller owns the result, except what it shares
// with e.Object.
func (s *Store[T]) Decode(e Encoded) (core.Object, error) {
	if e.Object == nil || s.strategy.Encoding != nil { // a copy of maps shares too much
		return s.decode(e.JSON)
	}
	own := reflect.New(reflect.TypeOf(e.Object).Elem())
	own.Elem().Set(reflect.ValueOf(e.Object).Elem())
	obj := own.Interface().(core.Object)
	obj.SetResourceVersion(strconv.FormatInt(e.Revision, 10))
	return obj, nil
}

// WithoutDefaults decodes a bookmark's object, which stands for none: decoding it as a stored one
// would fill in defaults.
func WithoutDefaults(kind Resource, e Encoded) (Encoded, error) {
	if kind.Info().JSONOnly {
		return e, nil
	}
	e.Object = kind.New()
	if err := core.Decode(e.JSON, e.Object); err != nil {
		return Encoded{}, fmt.Errorf("decode bookmark: %w", err)
	}
	return e, nil
}

func (s *Store[T]) fieldsOf(value []byte) (fields.Set, error) {
	obj, err := s.decode(value)
	if err != nil {
		return nil, err
	}
	return s.strategy.Read.Fields(obj), nil
}

func encoded(o storage.Object) Encoded { return Encoded{JSON: o.Value, Revision: o.Revision} }
