package condition

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/authz"
	"kctl/proto/core"
	"kctl/proto/quantity"
)

// Forms are the objects of a request in the forms that users' webhooks and
// policies ask for, each converted once. They are not safe for concurrent use.
type Forms struct {
	a          *admission.Attributes
	cluster    match.Cluster
	authorizer authz.Authorizer
	forms      map[schema.GroupVersionKind]*Form
	subjects   map[schema.GroupVersionKind]*Subject
}

// Form is the object in a request and the stored one, in one form; nil if there
// is none.
type Form struct {
	Object, Old runtime.Object
	// Both in JSON, if requested.
	Text, OldText []byte
}

// NewForms returns the forms of a request.
func NewForms(a *admission.Attributes, cluster match.Cluster, authorizer authz.Authorizer) *Forms {
	return &Forms{
		a: a, cluster: cluster, authorizer: authorizer,
		forms: map[schema.GroupVersionKind]*Form{}, subjects: map[schema.GroupVersionKind]*Subject{},
	}
}

// Forget is called when the object has changed.
func (f *Forms) Forget() {
	clear(f.forms)
	clear(f.subjects)
}

// Of returns the form that a target asks for.
func (f *Forms) Of(ctx context.Context, target match.Target) (*Form, error) {
	if made := f.forms[target.GVK()]; made != nil {
		return made, nil
	}
	made := &Form{}
	var err error
	if made.Object, err = f.convert(ctx, f.a.Object, target); err != nil {
		return nil, err
	}
	if made.Old, err = f.convert(ctx, f.a.OldObject, target); err != nil {
		return nil, err
	}
	if f.a.ConnectOptions != nil && f.a.Object == nil {
		made.Object = f.a.ConnectOptions
	}
	f.forms[target.GVK()] = made
	return made, nil
}

// Encoded returns the form that a target asks for, including its JSON.
func (f *Forms) Encoded(ctx context.Context, target match.Target) (*Form, error) {
	of, err := f.Of(ctx, target)
	if err != nil {
		return nil, err
	}
	if of.Object != nil && of.Text == nil {
		if of.Text, err = json.Marshal(of.Object); err != nil {
			return nil, fmt.Errorf("encode the object: %w", err)
		}
	}
	if of.Old != nil && of.OldText == nil {
		if of.OldText, err = json.Marshal(of.Old); err != nil {
			return nil, fmt.Errorf("encode the old object: %w", err)
		}
	}
	return of, nil
}

// convert returns nil for nil, not an interface that holds nil.
func (f *Forms) convert(ctx context.Context, obj core.Object, target match.Target) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	if target.Converted && obj.GetObjectKind().GroupVersionKind() == f.a.Resource.GVK() {
		var err error
		if obj, err = f.cluster.Versions.Convert(ctx, obj, target.Resource); err != nil {
			return nil, fmt.Errorf("convert to %s: %w", target.GVK(), err)
		}
	}
	if obj.GetObjectKind().GroupVersionKind().Kind == "" {
		obj = obj.DeepCopyObject().(core.Object) // a stored object may be shared
		obj.GetObjectKind().SetGroupVersionKind(target.Kind(f.a))
	}
	return obj, nil
}

// Subject is the request as the expressions of a target see it.
func (f *Forms) Subject(ctx context.Context, target match.Target) (*Subject, error) {
	if made := f.subjects[target.GVK()]; made != nil {
		return made, nil
	}
	of, err := f.Of(ctx, target)
	if err != nil {
		return nil, err
	}
	var namespace *core.Namespace
	if f.a.Namespace != "" && f.a.Resource.Namespaced {
		if namespace, err = f.cluster.Namespace(ctx, f.a.Namespace); err != nil {
			return nil, err
		}
	}
	made, err := subjectInput{attributes: f.a, target: target, form: of, namespace: namespace, authorizer: f.authorizer}.subject()
	f.subjects[target.GVK()] = made
	return made, err
}

// Decode decodes a changed object in a target's form, and converts it to the
// request's. strict refuses unknown fields.
func (f *Forms) Decode(ctx context.Context, text []byte, target match.Target, strict bool) (core.Object, error) {
	decoded, err := f.decode(ctx, text, target, strict)
	if err != nil {
		return nil, err
	}
	obj, ok := decoded.(core.Object)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be changed", decoded)
	}
	return f.ConvertBack(ctx, obj, target)
}

// DecodeConnectOptions decodes changed options of a Connect.
func (f *Forms) DecodeConnectOptions(ctx context.Context, text []byte, target match.Target) (runtime.Object, error) {
	options, err := f.decode(ctx, text, target, false)
	if err != nil {
		return nil, err
	}
	options.GetObjectKind().SetGroupVersionKind(target.Kind(f.a))
	return options, nil
}

// decode decodes into a new value of the type that the target's form has.
func (f *Forms) decode(ctx context.Context, text []byte, target match.Target, strict bool) (runtime.Object, error) {
	of, err := f.Of(ctx, target)
	if err != nil {
		return nil, err
	}
	obj, ok := reflect.New(reflect.TypeOf(of.Object).Elem()).Interface().(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be changed", of.Object)
	}
	if err := decode(text, obj, strict); err != nil {
		return nil, err
	}
	if got, want := obj.GetObjectKind().GroupVersionKind(), target.Kind(f.a); !got.Empty() && got != want {
		return nil, fmt.Errorf("the object was made a %s, it has to stay a %s", got, want)
	}
	return obj, nil
}

// ConvertBack converts an object from a target's form to the request's.
func (f *Forms) ConvertBack(ctx context.Context, obj core.Object, target match.Target) (core.Object, error) {
	kind := target.Kind(f.a)
	obj.GetObjectKind().SetGroupVersionKind(kind)
	if kind != f.a.Kind() {
		return f.cluster.Versions.Convert(ctx, obj, f.a.Resource)
	}
	return obj, nil
}

func decode(text []byte, obj runtime.Object, strict bool) error {
	if err := quantity.Check(text, obj); err != nil {
		return err
	}
	if !strict {
		return kjson.UnmarshalCaseSensitivePreserveInts(text, obj)
	}
	problems, err := kjson.UnmarshalStrict(text, obj)
	if err == nil && len(problems) > 0 {
		err = runtime.NewStrictDecodingError(problems)
	}
	return err
}
