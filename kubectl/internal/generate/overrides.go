package generate

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

// OverrideType says how overrides are laid over a generated object.
type OverrideType string

// The ways of overriding.
const (
	OverrideMerge     OverrideType = "merge"     // JSON merge patch (RFC 7386)
	OverrideJSON      OverrideType = "json"      // JSON patch (RFC 6902)
	OverrideStrategic OverrideType = "strategic" // lists merged by their keys
)

// Override applies a user's overrides, JSON or YAML, to a generated pod. The
// result is decoded strictly: an override of a field that no pod has is refused
// rather than dropped.
func Override(pod *core.Pod, overrides string, how OverrideType) (*core.Pod, error) {
	if overrides == "" {
		return pod, nil
	}
	patched, err := applyOverride(pod, core.Pod{}, overrides, how)
	if err != nil {
		return nil, err
	}
	out := &core.Pod{}
	strict, err := kjson.UnmarshalStrict(patched, out)
	if err != nil {
		return nil, fmt.Errorf("overrides: the result is not a pod: %w", err)
	}
	if len(strict) > 0 {
		return nil, fmt.Errorf("overrides: %w", strict[0])
	}
	if out.APIVersion != pod.APIVersion || out.Kind != pod.Kind {
		return nil, fmt.Errorf("overrides must not change the kind: have %s %s, want %s %s",
			out.APIVersion, out.Kind, pod.APIVersion, pod.Kind)
	}
	return out, nil
}

// OverrideObject is Override for an object of any kind; kind is an empty value of
// its Go type.
func OverrideObject(object *unstructured.Unstructured, kind any, overrides string, how OverrideType) (*unstructured.Unstructured, error) {
	if overrides == "" {
		return object, nil
	}
	patched, err := applyOverride(object, kind, overrides, how)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(patched, &out.Object); err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	return out, nil
}

// applyOverride lays overrides over what object is encoded as.
func applyOverride(object, kind any, overrides string, how OverrideType) ([]byte, error) {
	patch, err := yaml.YAMLToJSON([]byte(overrides))
	if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	original, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the generated object: %w", err)
	}
	var patched []byte
	switch isObject := bytes.HasPrefix(bytes.TrimSpace(patch), []byte("{")); how {
	case OverrideJSON:
		operations, notOne := jsonpatch.DecodePatch(patch)
		if notOne != nil {
			return nil, fmt.Errorf("overrides: not a JSON patch, which is a list of operations: %w", notOne)
		}
		patched, err = operations.Apply(original)
	case OverrideMerge, OverrideStrategic, "":
		switch {
		case !isObject:
			return nil, fmt.Errorf("overrides: a %s patch is an object", how)
		case how == OverrideStrategic:
			patched, err = strategicpatch.StrategicMergePatch(original, patch, kind)
		default:
			patched, err = jsonpatch.MergePatch(original, patch)
		}
	default:
		return nil, fmt.Errorf("invalid override type %q: must be merge, json or strategic", how)
	}
	if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	return patched, nil
}
