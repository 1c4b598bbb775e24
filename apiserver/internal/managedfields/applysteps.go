package managedfields

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/mergeschema"
)

// maxApplySteps bounds the work of one apply to a few seconds. The library searches for the
// place of each field and element among its siblings, and moves those after it; elements cost
// several times as much. A map of 60,000 fields reaches the bound, which is more than etcd by
// default stores with their owners, and so does a list of 20,000 elements with owners.
const (
	maxApplySteps = 60_000 * 60_000
	elementSteps  = 9
)

// checkSteps refuses an apply that takes too much work.
func (t *Tracker) checkSteps(applied map[string]any) error {
	if steps := applySteps(applied, t.options.Schema()); steps > maxApplySteps {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("too many fields are applied in one map or list (%d steps, at most %d are taken); an update has no such bound", steps, maxApplySteps))
	}
	return nil
}

// applySteps counts the steps of all parts with owners of their own.
func applySteps(value any, s *mergeschema.Schema) int {
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
			steps += applySteps(field, s.Field([]byte(name)))
		}
		return steps + len(value)*len(value)
	case []any:
		if s.Kind != mergeschema.ListSet && s.Kind != mergeschema.ListMap {
			return 0
		}
		for _, element := range value {
			steps += applySteps(element, s.Element)
		}
		return steps + elementSteps*len(value)*len(value)
	}
	return 0
}
