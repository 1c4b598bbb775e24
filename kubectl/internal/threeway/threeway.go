// Package threeway works out what `apply` has to change, from what was applied
// last (which an annotation of the object records), what is wanted now, and
// what is there. Fields that were applied and are no longer wanted are removed;
// fields that others set stay. `edit` needs only two of the three.
//
// It does no I/O; package command calls it.
package threeway

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// LastApplied is the annotation that records what was applied. It is kubectl's
// own, so that both programs can be used on one object.
const LastApplied = corev1.LastAppliedConfigAnnotation

// Schema says by which keys the lists of a kind are merged. Kinds without one
// (nil) are merged as plain JSON.
type Schema = strategicpatch.LookupPatchMeta

// Remember writes the object's configuration into its annotation.
func Remember(object *unstructured.Unstructured) error {
	plain := object.DeepCopy()
	annotations := plain.GetAnnotations()
	delete(annotations, LastApplied)
	if annotations == nil {
		annotations = map[string]string{}
	}
	// Set as a plain value: SetAnnotations would leave an empty map out, and
	// kubectl does not.
	if err := setAnnotations(plain, annotations); err != nil {
		return err
	}
	text, err := json.Marshal(plain.Object)
	if err != nil {
		return fmt.Errorf("encoding the object: %w", err)
	}
	annotations[LastApplied] = string(text) + "\n"
	return setAnnotations(object, annotations)
}

// RememberPatch is a merge patch that writes a configuration, as text, into the annotation.
func RememberPatch(configuration string) ([]byte, error) {
	annotations := map[string]any{LastApplied: configuration}
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// Prune removes nulls from an object that is to be created, as a patch of an existing
// object would: a server reads the null of a number as 0.
func Prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			if each == nil {
				delete(value, key)
			}
			Prune(each)
		}
	case []any:
		for _, each := range value {
			Prune(each)
		}
	}
}

func setAnnotations(object *unstructured.Unstructured, annotations map[string]string) error {
	values := make(map[string]any, len(annotations))
	for key, value := range annotations {
		values[key] = value
	}
	if err := unstructured.SetNestedMap(object.Object, values, "metadata", "annotations"); err != nil {
		return fmt.Errorf("setting annotations: %w", err)
	}
	return nil
}

// Apply makes a change that Patch or the user worked out, on a copy of the
// object, as a server would.
func Apply(schema Schema, current *unstructured.Unstructured, patch []byte,
	kind types.PatchType) (changed *unstructured.Unstructured, err error) {
	defer recoverPanic(&err)
	before, err := json.Marshal(current.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object as it is: %w", err)
	}
	var after []byte
	switch kind {
	case types.StrategicMergePatchType:
		if schema == nil {
			return nil, fmt.Errorf("%s is not supported for %s: try --type merge", kind, current.GroupVersionKind())
		}
		after, err = strategicpatch.StrategicMergePatchUsingLookupPatchMeta(before, patch, schema)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = operations.Apply(before)
		}
	default:
		after, err = jsonpatch.MergePatch(before, patch)
	}
	if err != nil {
		return nil, fmt.Errorf("changing the object: %w", err)
	}
	changed = &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(after, &changed.Object); err != nil {
		return nil, fmt.Errorf("decoding the changed object: %w", err)
	}
	return changed, nil
}

// unchangeable are the fields that no patch may touch.
var unchangeable = []mergepatch.PreconditionFunc{
	mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"), mergepatch.RequireMetadataKeyUnchanged("name"),
}

// Patch works out the change from current to modified, which must carry its
// LastApplied. With a schema, lists are merged by their keys. A patch of "{}"
// changes nothing. Without overwrite, it is an error if somebody else has
// changed a field that is to be changed; this is detected only for kinds with a
// schema.
func Patch(schema Schema, current, modified *unstructured.Unstructured, overwrite bool) (patch []byte, kind types.PatchType, err error) {
	defer recoverPanic(&err)
	original := []byte(current.GetAnnotations()[LastApplied])
	if len(original) == 0 {
		original = nil
	}
	currentJSON, modifiedJSON, err := encode(current, modified)
	if err != nil {
		return nil, "", err
	}
	kind = types.StrategicMergePatchType
	if schema == nil {
		kind = types.MergePatchType
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modifiedJSON, currentJSON, unchangeable...)
	} else {
		patch, err = strategicpatch.CreateThreeWayMergePatch(original, modifiedJSON, currentJSON, schema, overwrite, unchangeable...)
	}
	if err != nil {
		return nil, "", fmt.Errorf("comparing with what was applied before: %w", err)
	}
	return patch, kind, nil
}

// TwoWay works out the change from before to after.
func TwoWay(schema Schema, before, after *unstructured.Unstructured) (patch []byte, kind types.PatchType, err error) {
	defer recoverPanic(&err)
	old, new, err := encode(before, after)
	if err != nil {
		return nil, "", err
	}
	kind = types.StrategicMergePatchType
	if schema == nil {
		kind = types.MergePatchType
		patch, err = jsonpatch.CreateMergePatch(old, new)
	} else {
		patch, err = strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(old, new, schema, unchangeable...)
	}
	if err != nil {
		return nil, "", fmt.Errorf("comparing with what was there before: %w", err)
	}
	return patch, kind, nil
}

// recoverPanic makes an error of a panic of package strategicpatch: it takes for granted
// that objects are what their schema says, and a server may send others.
func recoverPanic(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("the object is not what its schema says: %v", panicked)
	}
}

func encode(before, after *unstructured.Unstructured) (old, new []byte, err error) {
	if old, err = json.Marshal(before.Object); err != nil {
		return nil, nil, fmt.Errorf("encoding the object as it is: %w", err)
	}
	if new, err = json.Marshal(after.Object); err != nil {
		return nil, nil, fmt.Errorf("encoding the object as it shall be: %w", err)
	}
	return old, new, nil
}
