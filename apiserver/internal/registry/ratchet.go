package registry

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// newErrors are those of errs that the update brings. An object that was stored under laxer
// rules must not be stuck: its labels and replicas can be changed and its finalizers removed,
// so that it can go. So an error is left out if an update that changes nothing has the very
// same one, and what it is about stays as it is. That an error's text is the same is not
// enough: not each shows the value, and what it shows may have come from elsewhere.
//
// Errors of metadata and those of custom resources, which ratchet by their schemas (KEP-4008),
// don't come here.
func (s *Store[T]) newErrors(ctx context.Context, way UpdateStrategy[T], obj, old T, errs field.ErrorList) field.ErrorList {
	if len(errs) == 0 || s.strategy.Encoding != nil {
		return errs
	}
	same := old.DeepCopyObject().(T)
	if way.Prepare != nil {
		way.Prepare(ctx, same, old)
	}
	known := map[string]bool{}
	for _, e := range way.Validate(ctx, same, old) {
		known[e.Error()] = true
	}
	if len(known) == 0 {
		return errs
	}
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj) // as users see it, which is what paths are about
	if err != nil {
		return errs
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(same)
	if err != nil {
		return errs
	}
	return slices.DeleteFunc(errs, func(e *field.Error) bool { return known[e.Error()] && sameAt(e, now, was) })
}

// sameAt reports whether two objects have the same where an error is. What a path names may
// be what both lack, or no field at all; then all that is next to it must be the same. A
// field that is required and missing is no more wrong for what changes next to it, unless it is an
// element of a list that would have it: another element may have come in its place. Errors
// about no part of the object are about all of it but its metadata.
func sameAt(e *field.Error, now, was map[string]any) bool {
	var hereNow, hereWas any = now, was
	var elementNow, elementWas any
	root := true
	for path := e.Field; path != ""; {
		var step string
		step, path = firstStep(path)
		nextNow, inNow := child(hereNow, step)
		nextWas, inWas := child(hereWas, step)
		switch {
		case inNow != inWas:
			return false
		case inNow:
			root = false
		case path == "" && e.Type == field.ErrorTypeRequired:
			return reflect.DeepEqual(elementNow, elementWas)
		default:
			nextNow, nextWas, path = hereNow, hereWas, ""
		}
		if _, ofList := hereNow.([]any); ofList && inNow {
			elementNow, elementWas = nextNow, nextWas
		}
		hereNow, hereWas = nextNow, nextWas
	}
	if root {
		return reflect.DeepEqual(withoutMetadata(now), withoutMetadata(was))
	}
	return reflect.DeepEqual(hereNow, hereWas)
}

// withoutMetadata is what errors about a whole object are about: those of metadata have their own paths.
func withoutMetadata(of map[string]any) map[string]any {
	of = maps.Clone(of)
	delete(of, "metadata")
	return of
}

// firstStep takes the first step off a path: a field's name, or what is in brackets.
func firstStep(path string) (step, rest string) {
	if key, ok := strings.CutPrefix(path, "["); ok {
		step, rest, _ = strings.Cut(key, "]")
		return step, rest
	}
	path = strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end], path[end:]
	}
	return path, ""
}

func child(of any, step string) (any, bool) {
	switch of := of.(type) {
	case map[string]any:
		value, ok := of[step]
		return value, ok
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(of) {
			return of[i], true
		}
	}
	return nil, false
}
