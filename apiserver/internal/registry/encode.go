package registry

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// encode returns obj as it is stored: with its kind and without a
// resourceVersion, both of which it sets in obj.
func (s *Store[T]) encode(obj T) ([]byte, error) {
	obj.GetObjectKind().SetGroupVersionKind(s.strategy.Resource.GVK())
	obj.SetResourceVersion("")
	value, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", s.strategy.Resource.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return value, nil
}

// decode returns a stored object, defaulted: what stored it may not have known
// of every field.
func (s *Store[T]) decode(value []byte) (T, error) {
	obj := s.strategy.New()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, obj); err != nil {
		return obj, fmt.Errorf("decode %s: %w", s.strategy.Resource.Kind, err)
	}
	if s.strategy.Default != nil {
		s.strategy.Default(obj)
	}
	return obj, nil
}

// Decode implements Resource.
func (s *Store[T]) Decode(e Encoded) (core.Object, error) {
	if e.Object != nil {
		return e.Object, nil
	}
	return s.decode(e.JSON)
}

// justWritten is the answer to a write of obj, which becomes the answer's.
func justWritten(stored storage.Object, obj core.Object) Encoded {
	obj.SetResourceVersion(strconv.FormatInt(stored.Revision, 10))
	return Encoded{JSON: stored.Value, Revision: stored.Revision, Object: obj}
}

func (s *Store[T]) fieldsOf(value []byte) (fields.Set, error) {
	obj, err := s.decode(value)
	if err != nil {
		return nil, err
	}
	return s.strategy.Fields(obj), nil
}

func encoded(o storage.Object) Encoded { return Encoded{JSON: o.Value, Revision: o.Revision} }
