// Package threeway works out what `apply` has to change: from what was applied
// last (which the object remembers in an annotation), what shall be now, and
// what is. Fields that were applied and are no longer wanted are removed;
// fields that others set stay.
//
// It does no I/O; package command calls it.
package threeway

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// LastApplied is the annotation that remembers what was applied. It is
// kubectl's own, so that both can take turns on one object.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

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

// Apply makes a change that Patch worked out, on a copy of the object, as a
// server would.
func Apply(scheme *runtime.Scheme, current *unstructured.Unstructured, patch []byte, kind types.PatchType) (*unstructured.Unstructured, error) {
	before, err := json.Marshal(current.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object as it is: %w", err)
	}
	var after []byte
	if kind == types.StrategicMergePatchType {
		typed, err := scheme.New(current.GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("kind %s: %w", current.GetKind(), err)
		}
		after, err = strategicpatch.StrategicMergePatch(before, patch, typed)
		if err != nil {
			return nil, fmt.Errorf("changing the object: %w", err)
		}
	} else if after, err = jsonpatch.MergePatch(before, patch); err != nil {
		return nil, fmt.Errorf("changing the object: %w", err)
	}
	changed := &unstructured.Unstructured{}
	if err := json.Unmarshal(after, &changed.Object); err != nil {
		return nil, fmt.Errorf("decoding the changed object: %w", err)
	}
	return changed, nil
}

// Patch works out the change from current to modified, which must carry its
// LastApplied. Kinds that the scheme knows are patched strategically, lists
// merged by their keys; others by JSON merge. A patch of "{}" changes nothing.
func Patch(scheme *runtime.Scheme, current, modified *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	original := []byte(current.GetAnnotations()[LastApplied])
	if len(original) == 0 {
		original = nil
	}
	currentJSON, err := json.Marshal(current.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the object as it is: %w", err)
	}
	modifiedJSON, err := json.Marshal(modified.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the object as it shall be: %w", err)
	}
	unchangeable := []mergepatch.PreconditionFunc{
		mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"), mergepatch.RequireMetadataKeyUnchanged("name"),
	}
	typed, err := scheme.New(modified.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modifiedJSON, currentJSON, unchangeable...)
		if err != nil {
			return nil, "", fmt.Errorf("comparing with what was applied before: %w", err)
		}
		return patch, types.MergePatchType, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("kind %s: %w", modified.GetKind(), err)
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, "", fmt.Errorf("kind %s: %w", modified.GetKind(), err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modifiedJSON, currentJSON, meta, true, unchangeable...)
	if err != nil {
		return nil, "", fmt.Errorf("comparing with what was applied before: %w", err)
	}
	return patch, types.StrategicMergePatchType, nil
}
