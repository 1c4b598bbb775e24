package handlers

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/proto/core"
)

// maxMergeSteps bounds the work of one strategic merge patch to a second or two:
// enough for lists of 7,000 elements. The library searches for each element of a
// list, stored ones included, among all others, so that a short patch of one
// element of a long list could keep a CPU busy for minutes.
const maxMergeSteps = 50_000_000

// smallMerge is a size of object and patch, in bytes, below which there can't be
// many steps, however deeply elements are nested. Most patches are that short.
const smallMerge = 4 << 10

// checkMerge refuses a patch that takes too much work.
func checkMerge(patch, current map[string]any, kind core.Object) error {
	schema, err := strategicpatch.NewPatchMetaFromStruct(kind)
	if err != nil {
		return fmt.Errorf("merge into a %T: %w", kind, err)
	}
	if steps := mergeSteps(patch, current, schema); steps > maxMergeSteps {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the lists are too long for this strategic merge patch (%d steps, at most "+
			"%d are accepted); use a JSON patch instead", steps, maxMergeSteps))
	}
	return nil
}

// mergeSteps is how often elements are compared with each other. Fields unknown
// to the schema are left for the merge to refuse.
func mergeSteps(patch, current map[string]any, schema strategicpatch.LookupPatchMeta) int {
	steps := 0
	lengths := map[string]int{} // of a field's lists: its elements, their order, the deleted ones
	for key, value := range patch {
		switch value := value.(type) {
		case map[string]any:
			if below, _, err := schema.LookupPatchMetadataForStruct(key); err == nil {
				before, _ := current[key].(map[string]any)
				steps += mergeSteps(value, before, below)
			}
		case []any:
			if directive, field, ok := strings.Cut(key, "/"); ok && strings.HasPrefix(directive, "$") {
				key = field
			}
			lengths[key] += len(value)
		}
	}
	for key, length := range lengths {
		below, meta, err := schema.LookupPatchMetadataForSlice(key)
		if err != nil || !slices.Contains(meta.GetPatchStrategies(), "merge") {
			continue
		}
		stored, _ := current[key].([]any)
		length += len(stored)
		steps += length * length
		elements, _ := patch[key].([]any)
		steps += elementSteps(elements, stored, meta.GetPatchMergeKey(), below)
	}
	return steps
}

// elementSteps are the steps within elements that already exist.
func elementSteps(elements, stored []any, mergeKey string, schema strategicpatch.LookupPatchMeta) int {
	known := make(map[string]map[string]any, len(stored))
	for _, element := range stored {
		if object, ok := element.(map[string]any); ok {
			known[fmt.Sprint(object[mergeKey])] = object
		}
	}
	steps := 0
	for _, element := range elements {
		if object, ok := element.(map[string]any); ok {
			steps += mergeSteps(object, known[fmt.Sprint(object[mergeKey])], schema)
		}
	}
	return steps
}
