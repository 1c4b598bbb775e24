package managedfields

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// maxApplySteps bounds the library's work for one apply, or for an update that changes
// managedFields, to a few seconds. The library searches for the place of each field and element
// among its siblings, and moves those after it; elements cost several times as much. It also has
// room for each of them in all that they are nested in. A map of 60,000 fields reaches the
// bound, which is more than etcd by default stores with their owners, and so does a list of
// 20,000 elements with owners, or an object 2,700 levels deep. What is applied counts, and what
// is there, which the library takes apart as well, whether it has owners or not.
const (
	maxApplySteps = 60_000 * 60_000
	elementSteps  = 9
	levelSteps    = 1_000
)

// checkSteps refuses an apply that takes too much work, because of what is applied, of the
// object that it is applied to, or of what the manager is said to have applied before.
func (t *Tracker) checkSteps(old core.Object, applied map[string]any, by Manager) error {
	if steps := mergeSteps(value.NewValueInterface(applied), t.options.Schema()); steps > maxApplySteps {
		return tooManyStepsError("too many fields are applied in one map or list, or too deep", steps)
	}
	if old == nil {
		return nil
	}
	if steps := t.objectSteps(old); steps > maxApplySteps {
		return tooManyStepsError("the object has too many fields in one map or list, or too deep, for anything to be applied to it", steps)
	}
	for _, entry := range old.GetManagedFields() {
		if entry.Manager != by.Name || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != by.Subresource ||
			entry.FieldsV1 == nil {
			continue
		}
		if steps := ownedSteps(entry.FieldsV1.Raw); steps > maxApplySteps {
			return tooManyStepsError(fmt.Sprintf("metadata.managedFields has too many fields of %q, or too deep", by.Name), steps)
		}
	}
	return nil
}

func tooManyStepsError(what string, steps int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s (%d steps, at most %d are accepted); use an update instead",
		what, steps, maxApplySteps))
}

// ownedSteps counts the steps of a set of fields, for the levels that each is nested in.
func ownedSteps(set []byte) int {
	steps, depth := 0, 0
	for b := range bodylimit.Structure(set) {
		switch b {
		case '{':
			steps += levelSteps * depth
			depth++
		case '}':
			depth--
		}
	}
	return steps
}

// objectSteps counts the steps of an object; none, if it can't be read, which its reader reports.
func (t *Tracker) objectSteps(obj core.Object) int {
	if free, ok := obj.(*unstructured.Unstructured); ok {
		return mergeSteps(value.NewValueInterface(free.Object), t.options.Schema())
	}
	whole, err := value.NewValueReflect(obj)
	if err != nil {
		return 0
	}
	return mergeSteps(whole, t.options.Schema())
}

// mergeSteps counts the steps of all parts with owners of their own.
func mergeSteps(v value.Value, s *mergeschema.Schema) int {
	counter := stepCounter{value.NewFreelistAllocator()}
	return counter.count(v, s, 0)
}

type stepCounter struct{ allocator value.Allocator }

// count is for a value within depth others. What is unknown to the schema is reported by the
// library.
func (c stepCounter) count(v value.Value, s *mergeschema.Schema, depth int) int {
	if s == nil {
		return 0
	}
	steps := 0
	switch s.Kind {
	case mergeschema.Struct, mergeschema.Map, mergeschema.Deduced:
		if !v.IsMap() {
			return 0
		}
		m := v.AsMapUsing(c.allocator)
		defer c.allocator.Free(m)
		m.IterateUsing(c.allocator, func(name string, field value.Value) bool {
			steps += c.count(field, s.Field([]byte(name)), depth+1)
			return true
		})
		return steps + m.Length()*(m.Length()+levelSteps*depth)
	case mergeschema.ListSet, mergeschema.ListMap:
		if !v.IsList() {
			return 0
		}
		list := v.AsListUsing(c.allocator)
		defer c.allocator.Free(list)
		elements := list.RangeUsing(c.allocator)
		defer c.allocator.Free(elements)
		for elements.Next() {
			_, element := elements.Item()
			steps += c.count(element, s.Element, depth+1)
		}
		return steps + list.Length()*(elementSteps*list.Length()+levelSteps*depth)
	}
	return 0
}
