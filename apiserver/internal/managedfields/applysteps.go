package managedfields

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// maxApplySteps bounds the work of one apply to a few seconds. The library searches for the
// place of each field and element among its siblings, and moves those after it; elements cost
// several times as much. It also has room for each of them in all that they are nested in. A map
// of 60,000 fields reaches the bound, which is more than etcd by default stores with their
// owners, and so does a list of 20,000 elements with owners, or an object 2,700 levels deep.
const (
	maxApplySteps = 60_000 * 60_000
	elementSteps  = 9
	levelSteps    = 1_000
)

// checkSteps refuses an apply that takes too much work, because of what is applied or because
// of what the manager is said to have applied before.
func (t *Tracker) checkSteps(old core.Object, applied map[string]any, by Manager) error {
	if steps := applySteps(applied, t.options.Schema(), 0); steps > maxApplySteps {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("too many fields are applied in one map or list, or too deep (%d steps, at most %d are taken); an update has no such bound", steps, maxApplySteps))
	}
	if old == nil {
		return nil
	}
	for _, entry := range old.GetManagedFields() {
		if entry.Manager != by.Name || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != by.Subresource || entry.FieldsV1 == nil {
			continue
		}
		if steps := ownedSteps(entry.FieldsV1.Raw); steps > maxApplySteps {
			return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("metadata.managedFields has too many fields of %q, or too deep (%d steps, at most %d are taken)", by.Name, steps, maxApplySteps))
		}
	}
	return nil
}

// ownedSteps counts the steps of a set of fields, for the levels that each is nested in.
func ownedSteps(set []byte) int {
	steps, depth, quoted := 0, 0, false
	for i := 0; i < len(set); i++ {
		switch b := set[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{':
			steps += levelSteps * depth
			depth++
		case b == '}':
			depth--
		}
	}
	return steps
}

// applySteps counts the steps of all parts with owners of their own, of a value within that
// many others.
func applySteps(value any, s *mergeschema.Schema, depth int) int {
	if s == nil {
		return 0 // the apply reports it as unknown
	}
	steps := 0
	switch value := value.(type) {
	case map[string]any:
		if s.Kind != mergeschema.Struct && s.Kind != mergeschema.Map && s.Kind != mergeschema.Deduced {
			return 0
		}
		for name, field := range value {
			steps += applySteps(field, s.Field([]byte(name)), depth+1)
		}
		return steps + len(value)*(len(value)+levelSteps*depth)
	case []any:
		if s.Kind != mergeschema.ListSet && s.Kind != mergeschema.ListMap {
			return 0
		}
		for _, element := range value {
			steps += applySteps(element, s.Element, depth+1)
		}
		return steps + len(value)*(elementSteps*len(value)+levelSteps*depth)
	}
	return 0
}
