package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	library "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/jsonpatch"
	"kctl/apiserver/internal/status"
	"kctl/proto/core"
)

// jsonPatchOp is one operation of a JSON patch (RFC 6902).
type jsonPatchOp struct {
	Op    string `json:"op"`
	From  string `json:"from"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func jsonPatcher(body []byte) (patcher, error) {
	var operations []jsonPatchOp
	doubled, err := kjson.UnmarshalStrict(body, &operations)
	if err != nil {
		return patcher{}, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	for i, err := range doubled {
		doubled[i] = fmt.Errorf("json patch %w", err)
	}
	if len(operations) > jsonpatch.MaxOperations {
		return patcher{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d",
			jsonpatch.MaxOperations, len(operations)))
	}
	patch, err := library.DecodePatch(body)
	if err != nil {
		return patcher{}, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	return patcher{duplicateFields: doubled, apply: func(before []byte) ([]byte, error) {
		if err := checkOperations(operations, body, before); err != nil {
			return nil, err
		}
		after, err := jsonpatch.Apply(patch, before)
		if err != nil {
			return nil, unprocessable(err)
		}
		return after, nil
	}}, nil
}

func mergePatcher(body []byte) (patcher, error) {
	object, doubled, err := readObject(body)
	if err != nil {
		return patcher{}, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	if string(bytes.TrimSpace(body)) == "null" {
		return patcher{}, apierrors.NewBadRequest("Invalid JSON Patch")
	}
	return patcher{duplicateFields: doubled, fields: patchedFieldsOf(object), apply: func(before []byte) ([]byte, error) {
		after, err := library.MergePatch(before, body)
		if err != nil {
			return nil, apierrors.NewBadRequest("error applying patch: " + err.Error())
		}
		return after, nil
	}}, nil
}

func strategicPatcher(body []byte, kind core.Object) (patcher, error) {
	object, doubled, err := readObject(body)
	if err != nil {
		return patcher{}, apierrors.NewBadRequest(err.Error())
	}
	return patcher{duplicateFields: doubled, fields: patchedFieldsOf(object), keepsKind: true,
		apply: func(before []byte) (after []byte, err error) {
			// An order directive for elements without a key makes the library panic, and
			// kube-apiserver drop the connection.
			defer func() {
				if fault := recover(); fault != nil {
					after, err = nil, apierrors.NewBadRequest(fmt.Sprintf("the strategic merge patch can't be applied: %v", fault))
				}
			}()
			var current map[string]any
			if err := kjson.UnmarshalCaseSensitivePreserveInts(before, &current); err != nil {
				return nil, fmt.Errorf("decode what is to be patched: %w", err)
			}
			if len(before)+len(body) > smallMerge {
				if err := checkMerge(object, current, kind); err != nil {
					return nil, err
				}
			}
			// The merge modifies the patch, and there may be another attempt.
			merged, err := strategicpatch.StrategicMergeMapPatch(current, runtime.DeepCopyJSON(object), kind)
			if err != nil {
				return nil, unmergeable(err)
			}
			return json.Marshal(merged)
		}}, nil
}

// unmergeable is upstream's answer to a strategic merge patch that can't be
// applied: it recognises only some faults as the client's.
func unmergeable(err error) error {
	for _, fault := range []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	} {
		if errors.Is(err, fault) {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	return status.WithoutReason(err.Error())
}

// readObject reads a patch that is an object, and returns its duplicate fields.
func readObject(body []byte) (object map[string]any, doubled []error, err error) {
	doubled, err = kjson.UnmarshalStrict(body, &object)
	return object, doubled, err
}

// maxPatchDepth is deeper than any real object. Merging reads the rest of a
// patch again at each level, so its work grows with size times depth.
const maxPatchDepth = 128

// depthOf is how deeply objects and arrays are nested in valid JSON.
func depthOf(text []byte) int {
	depth, deepest := 0, 0
	for b := range bodylimit.Structure(text) {
		switch b {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// unprocessable is the error for a patch that was understood but cannot be applied.
func unprocessable(err error) error {
	// The library wraps nothing if there is nothing to add.
	why := strings.TrimSuffix(err.Error(), ": %!w(<nil>)")
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: "patch", Message: why,
		}}},
	}}
}
