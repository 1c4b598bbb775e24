package managedfields

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// Merge merges a policy's configuration into the object and returns the result,
// without managedFields: changes in admission belong to the request's manager.
// Atomic values can't be merged, and are refused (Kubernetes docs, "Mutating
// Admission Policy", "ApplyConfiguration").
func (t *Tracker) Merge(obj core.Object, wanted map[string]any) (core.Object, error) {
	converter := t.converter()
	patch, err := converter.kind.FromUnstructured(wanted)
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if places := atomic(t.options.Schema(), wanted, "", nil); len(places) > 0 {
		slices.Sort(places)
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s", strings.Join(places, ", "))
	}
	live, err := converter.ObjectToTyped(obj, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	merged, err := live.Merge(patch)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	out, err := converter.TypedToObject(merged)
	if err != nil {
		return nil, err
	}
	object, ok := out.(core.Object)
	if !ok {
		return nil, fmt.Errorf("merging made a %T", out)
	}
	return object, nil
}

// atomic adds the paths of atomic values in value.
func atomic(s *mergeschema.Schema, value any, at string, places []string) []string {
	if s == nil || s.Kind == mergeschema.Deduced {
		return places
	}
	switch v := value.(type) {
	case map[string]any:
		if s.Kind == mergeschema.AtomicMap {
			return append(places, at)
		}
		for name, inner := range v {
			places = atomic(s.Field([]byte(name)), inner, at+"."+name, places)
		}
	case []any:
		if s.Kind == mergeschema.AtomicList {
			return append(places, at)
		}
		for i, inner := range v {
			places = atomic(s.Element, inner, fmt.Sprintf("%s[%d]", at, i), places)
		}
	}
	return places
}
