package customresources

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/customresources/structural"
	"kctl/apiserver/internal/registry"
)

// strategy is how the objects of a version are handled, which are stored in the
// storage version.
func (c *converter) strategy(e *entry, f, storage *compiledVersion, clock clock.PassiveClock) registry.Strategy[*object] {
	s := registry.Strategy[*object]{
		Resource: e.resource(f.name), Singular: e.names.Singular, ShortNames: e.names.ShortNames, Categories: e.names.Categories,
		StoragePrefix: e.group + "/" + e.names.Plural,
		New: func() *object {
			return &object{Object: map[string]any{"apiVersion": f.apiVersion(), "kind": f.kind, "metadata": map[string]any{}}}
		},
		Encoding: c.encoding(f, storage),
		// What a webhook has added is pruned like what a user sends.
		Default: func(o *object) {
			f.prune(o.Object, false)
			f.schema.Default(o.Object)
		},
		ValidateLast:  f.validateRules,
		HasGeneration: true,
		DesiredState:  f.desired,
		Create: registry.CreateStrategy[*object]{
			Prepare: func(_ context.Context, o *object) {
				if f.hasStatus() {
					delete(o.Object, "status")
					f.schema.Default(o.Object) // of the status, too
				}
			},
			Validate: func(_ context.Context, o *object) field.ErrorList { return f.validate(o, nil) },
			Warnings: func(_ context.Context, o *object) []string { return registry.FinalizerWarnings(o.GetFinalizers(), nil) },
		},
		Update: f.updateStrategy(),
		Read: registry.ReadStrategy[*object]{
			UnknownFieldMessage: notSelectable,
			Columns:             f.columns.definitions,
			Row:                 func(o *object) []any { return f.columns.row(o, clock.Now()) },
		},
	}
	if f.hasStatus() {
		s.Status = f.statusStrategy()
	}
	if all := c.selectable(); len(all) > 0 {
		s.Read.Fields = func(o *object) fields.Set { return selectableSet(all, o) }
	}
	return s
}

func (f *compiledVersion) updateStrategy() registry.UpdateStrategy[*object] {
	return registry.UpdateStrategy[*object]{
		Prepare: func(_ context.Context, o, old *object) {
			if f.hasStatus() {
				takeStatus(o, old)
			}
		},
		Validate: func(_ context.Context, o, old *object) field.ErrorList { return f.validate(o, old) },
		Warnings: func(_ context.Context, o, old *object) []string {
			return registry.FinalizerWarnings(o.GetFinalizers(), old.GetFinalizers())
		},
	}
}

func (f *compiledVersion) statusStrategy() *registry.UpdateStrategy[*object] {
	return &registry.UpdateStrategy[*object]{
		KeepsMetadata: true,
		Prepare:       func(_ context.Context, o, old *object) { keepOnlyStatus(o, old) },
		Validate:      func(_ context.Context, o, old *object) field.ErrorList { return f.validateStatus(o, old) },
	}
}

// encoding is how objects of a version are written in the storage version, and read.
func (c *converter) encoding(f, storage *compiledVersion) *registry.Encoding[*object] {
	return &registry.Encoding[*object]{
		Encode:          func(o *object) ([]byte, error) { return c.encode(f, storage, o) },
		Decode:          func(value []byte) (*object, error) { return c.decode(f, value) },
		DecodeBody:      f.decodeBody,
		Settle:          f.settle,
		NormalizeStored: c.normalizeStored,
		MergeSchema:     f.mergeSchema,
	}
}

// desired is everything but the status, if that has a subresource.
func (f *compiledVersion) desired(o *object) any {
	out := make(map[string]any, len(o.Object))
	for name, value := range o.Object {
		switch name {
		case "apiVersion", "kind", "metadata":
			continue
		case "status":
			if f.hasStatus() {
				continue
			}
		}
		out[name] = value
	}
	return out
}

// takeStatus gives o the status of another, or none if that has none.
func takeStatus(o, from *object) {
	if status, ok := from.Object["status"]; ok {
		o.Object["status"] = status
		return
	}
	delete(o.Object, "status")
}

// keepOnlyStatus reduces a change to the status.
func keepOnlyStatus(o, old *object) {
	sent := *o
	o.Object = old.DeepCopy().Object
	takeStatus(o, &sent)
	o.SetManagedFields(sent.GetManagedFields())
	o.SetResourceVersion(sent.GetResourceVersion())
}

func (f *compiledVersion) validate(o, old *object) (errs field.ErrorList) {
	if o.GetKind() != f.kind {
		return field.ErrorList{field.Invalid(field.NewPath("kind"), o.GetKind(), "must be "+f.kind)}
	}
	errs = structural.ValidateMetadata(o.Object)
	if f.schema != nil {
		errs = append(errs, f.schema.Validate(nil, o.Object, contentOf(old), old != nil)...)
		if old == nil || !reflect.DeepEqual(o.Object, old.Object) {
			errs = append(errs, f.schema.ValidateEmbedded(nil, o.Object, true)...)
		}
	}
	if f.scale != nil {
		errs = append(errs, f.scale.validateSpec(o)...)
		errs = append(errs, f.scale.validateStatus(o)...)
	}
	return errs
}

// contentOf is nil for no object.
func contentOf(o *object) any {
	if o == nil {
		return nil
	}
	return o.Object
}

// validateStatus checks only the status against its schema, with paths as if it
// were the whole object, as in upstream's messages.
func (f *compiledVersion) validateStatus(o, old *object) (errs field.ErrorList) {
	if f.schema != nil {
		status, has := o.Object["status"]
		if below := f.schema.Property("status"); below != nil && has {
			before, had := old.Object["status"]
			errs = below.ValidateAlone(field.NewPath("status"), status, before, had)
		}
	}
	if f.scale != nil {
		errs = append(errs, f.scale.validateStatus(o)...)
	}
	return errs
}

// validateRules evaluates the CEL rules of the whole object, unless one of errs prevents it.
func (f *compiledVersion) validateRules(ctx context.Context, o, old *object, errs field.ErrorList) field.ErrorList {
	if f.rules == nil {
		return nil
	}
	if slices.ContainsFunc(errs, preventsRules) {
		return field.ErrorList{field.Invalid(nil, nil,
			"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
	}
	return f.rules.Validate(ctx, o.Object, contentOf(old), old != nil)
}

// preventsRules reports whether an error means that the object is too far from its
// schema to evaluate rules, or to do so in time.
func preventsRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid, field.ErrorTypeNotSupported:
		return true
	}
	return false
}

// selectable is a field by which objects can be selected.
type selectable struct {
	name  string
	steps []string
}

func newSelectable(path string) selectable {
	name := strings.TrimPrefix(path, ".")
	return selectable{name: name, steps: strings.Split(name, ".")}
}

// selectable are the fields of all versions; none with a conversion webhook,
// since stored objects don't have them then.
func (c *converter) selectable() []selectable {
	if c.webhook != nil && len(c.versions) > 1 {
		return nil
	}
	var out []selectable
	seen := sets.Set[string]{}
	for _, f := range c.versions {
		for _, s := range f.selectableFields {
			if !seen.Has(s.name) {
				seen.Insert(s.name)
				out = append(out, s)
			}
		}
	}
	return out
}

func selectableSet(all []selectable, o *object) fields.Set {
	set := make(fields.Set, len(all))
	for _, s := range all {
		set[s.name] = ""
		if value, ok := lookUp(o.Object, s.steps); ok && value != nil {
			set[s.name] = fmt.Sprint(value)
		}
	}
	return set
}

// lookUp follows a path of names.
func lookUp(value any, steps []string) (any, bool) {
	for _, step := range steps {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[step]; !ok {
			return nil, false
		}
	}
	return value, true
}
