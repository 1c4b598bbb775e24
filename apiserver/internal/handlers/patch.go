package handlers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// maxPatchOperations bounds the work of one JSON patch; upstream's.
const maxPatchOperations = 10000

// A patch that copies what it copied doubles with each operation; this is how
// many bytes all copies of one patch may have, upstream's. The library keeps
// its bound in a variable of its own.
func init() { jsonpatch.AccumulatedCopySizeLimit = 3 << 20 }

// patch changes a stored object by one of the three patch formats.
func (c *call) patch() error {
	options, err := c.updateOptions()
	if err != nil {
		return err
	}
	if _, err := c.negotiate(false); err != nil {
		return err
	}
	apply, err := c.patcher()
	if err != nil {
		return err
	}
	change := func(current core.Object) (core.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(c.groupResource(), c.name)
		}
		return c.patched(current, apply, options.FieldValidation)
	}
	e, _, err := c.store.Update(c.ctx, c.namespace, c.name, c.subresource, change, c.admit(admission.Update, options, options.DryRun), options)
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, e)
}

// patched is what apply makes of current.
func (c *call) patched(current core.Object, apply func([]byte) ([]byte, error), fieldValidation string) (core.Object, error) {
	before, err := json.Marshal(current)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be patched: %w", err)
	}
	after, err := apply(before)
	if err != nil {
		return nil, err
	}
	obj := c.store.New()
	if err := c.decodeJSON(after, obj, c.resource.GVK(), fieldValidation); err != nil {
		if apierrors.IsBadRequest(err) {
			// The patch could be read; what it makes is no such object.
			return nil, unprocessable(err)
		}
		return nil, err
	}
	return obj, c.checkPlace(obj)
}

// patcher reads the request's patch.
func (c *call) patcher() (func([]byte) ([]byte, error), error) {
	media := types.PatchType(c.contentType())
	switch media {
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType:
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		return nil, unsupported(string(media), "server-side apply is not supported by this server", patchTypes...)
	default:
		return nil, unsupported(string(media), "", patchTypes...)
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	switch media {
	case types.JSONPatchType:
		return jsonPatcher(body)
	case types.MergePatchType:
		return mergePatcher(body)
	}
	return strategicPatcher(body, c.store.New())
}

var patchTypes = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType)}

func jsonPatcher(body []byte) (func([]byte) ([]byte, error), error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, apierrors.NewBadRequest("decode JSON patch: " + err.Error())
	}
	if len(patch) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the JSON patch has %d operations, at most %d are taken", len(patch), maxPatchOperations))
	}
	return func(before []byte) ([]byte, error) {
		after, err := patch.Apply(before)
		if err != nil {
			return nil, unprocessable(err)
		}
		return after, nil
	}, nil
}

func mergePatcher(body []byte) (func([]byte) ([]byte, error), error) {
	if err := checkObject(body); err != nil {
		return nil, err
	}
	if depth := depthOf(body); depth > maxMergeDepth {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the merge patch is nested %d deep, at most %d is taken", depth, maxMergeDepth))
	}
	return func(before []byte) ([]byte, error) {
		after, err := jsonpatch.MergePatch(before, body)
		if err != nil {
			return nil, apierrors.NewBadRequest("apply merge patch: " + err.Error())
		}
		return after, nil
	}, nil
}

func strategicPatcher(body []byte, kind core.Object) (func([]byte) ([]byte, error), error) {
	// kubectl sends YAML here where it was given YAML.
	text, err := yaml.YAMLToJSON(body)
	if err == nil {
		err = checkObject(text)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("decode strategic merge patch: " + err.Error())
	}
	return func(before []byte) ([]byte, error) {
		after, err := strategicpatch.StrategicMergePatch(before, text, kind)
		if err != nil {
			return nil, apierrors.NewBadRequest("apply strategic merge patch: " + err.Error())
		}
		return after, nil
	}, nil
}

// maxMergeDepth is deeper than any object is. Merging reads what is left of a
// patch anew at each level, so that its work grows with size times depth.
const maxMergeDepth = 128

// depthOf is how deep objects and arrays stand in each other in valid JSON.
func depthOf(text []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest
}

func checkObject(patch []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(patch, &object); err != nil {
		return apierrors.NewBadRequest("decode patch: " + err.Error())
	}
	if object == nil {
		return apierrors.NewBadRequest("decode patch: it is null, an object is wanted")
	}
	return nil
}

// unprocessable says that a patch was understood and cannot be applied.
func unprocessable(err error) error {
	var status apierrors.APIStatus
	message := err.Error()
	if errors.As(err, &status) {
		message = status.Status().Message
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request: " + message,
	}}
}
