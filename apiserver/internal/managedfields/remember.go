package managedfields

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	library "k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// libraryConverter is what the library converts objects with.
type libraryConverter interface {
	library.TypeConverter
	runtime.ObjectConvertor
	runtime.ObjectCreater
	runtime.ObjectDefaulter
}

// rememberingConverter is a converter for one write. The library converts the same object
// once for each manager of another version, and a webhook may have to be asked.
type rememberingConverter struct {
	*converter
	objects   map[*typed.TypedValue]runtime.Object
	converted map[conversion]runtime.Object
	values    map[runtime.Object]*typed.TypedValue // of those in converted
}

type conversion struct {
	from runtime.Object
	to   schema.GroupVersion
}

func newRememberingConverter(shared *converter) *rememberingConverter {
	c := *shared
	c.forms = map[*Tracker]*converter{}
	return &rememberingConverter{
		converter: &c, objects: map[*typed.TypedValue]runtime.Object{}, converted: map[conversion]runtime.Object{},
		values: map[runtime.Object]*typed.TypedValue{},
	}
}

// TypedToObject implements library.TypeConverter.
func (r *rememberingConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	if have := r.objects[value]; have != nil {
		return have, nil
	}
	obj, err := r.converter.TypedToObject(value)
	if err == nil {
		r.objects[value] = obj
	}
	return obj, err
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (r *rememberingConverter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	version, ok := target.(schema.GroupVersion)
	if !ok {
		return r.converter.ConvertToVersion(in, target)
	}
	asked := conversion{in, version}
	if have := r.converted[asked]; have != nil {
		return have, nil
	}
	out, err := r.converter.ConvertToVersion(in, target)
	if err == nil {
		r.converted[asked] = out
		if out != in {
			r.values[out] = nil
		}
	}
	return out, err
}

// ObjectToTyped implements library.TypeConverter.
func (r *rememberingConverter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	have, remembered := r.values[obj]
	if !remembered || len(options) > 0 {
		return r.converter.ObjectToTyped(obj, options...)
	}
	if have != nil {
		return have, nil
	}
	value, err := r.converter.ObjectToTyped(obj)
	if err == nil {
		r.values[obj] = value
	}
	return value, err
}
