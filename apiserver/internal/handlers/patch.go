package handlers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// patch changes a stored object by one of the patch formats.
func (c *call) patch() error {
	media := types.PatchType(c.patchType())
	if taken := c.patchTypes(); !slices.Contains(taken, string(media)) {
		return c.unsupportedPatch(taken)
	}
	if _, err := c.negotiate(); err != nil {
		return err
	}
	options, err := c.patchOptions(media)
	if err != nil {
		return err
	}
	if media == types.ApplyYAMLPatchType {
		return c.apply(options)
	}
	patcher, err := c.patcher(media)
	if err != nil {
		return err
	}
	change := func(current core.Object) (core.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(c.groupResource(), c.name)
		}
		return c.patched(current, patcher, options.FieldValidation)
	}
	admit := c.trackFields(c.admit(admission.Update, options, options.DryRun), options.FieldManager)
	e, _, err := c.store.Update(c.ctx, c.target(), change, admit, updateOptionsOf(options))
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, e)
}

// patchType is the request's content type exactly as it was written: upstream's
// routes distinguish patches by it.
func (c *call) patchType() string {
	media, _, _ := strings.Cut(c.header("Content-Type"), ";")
	return strings.TrimSpace(media)
}

// unsupportedPatch is upstream's answer to an unknown format. It names the
// accepted ones for custom resources only.
func (c *call) unsupportedPatch(taken []string) error {
	if c.custom {
		return unsupportedMediaType("", "", taken...)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnsupportedMediaType,
		Reason:  metav1.StatusReasonUnsupportedMediaType,
		Message: "415: Unsupported Media Type",
		Details: &metav1.StatusDetails{},
	}}
}

func (c *call) patchOptions(media types.PatchType) (*metav1.PatchOptions, error) {
	q := c.query()
	options := &metav1.PatchOptions{
		TypeMeta:        optionsType("PatchOptions"),
		DryRun:          q.Values["dryRun"],
		FieldManager:    q.Get("fieldManager"),
		FieldValidation: q.Get("fieldValidation"),
	}
	if q.Has("force") {
		force := q.bool("force")
		options.Force = &force
	}
	return options, invalidOptions("PatchOptions", validation.ValidatePatchOptions(options, media))
}

// patched returns the result of the patch on current, which it modifies.
func (c *call) patched(current core.Object, patch patcher, fieldValidation string) (core.Object, error) {
	putBack := func(core.Object) {}
	if patch.fields != nil && !c.jsonOnly {
		putBack = patch.fields.setAside(current)
	}
	before, err := scheme.Encode(current)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be patched: %w", err)
	}
	after, err := patch.apply(before)
	if err != nil {
		return nil, err
	}
	obj, strict, err := c.decodePatched(after, fieldValidation)
	if err != nil && patch.keepsKind && !c.jsonOnly {
		err = unrestorable(after, c.store.New(), err)
	}
	if err == nil {
		err = c.checkReadable(obj)
	}
	if err == nil {
		strict = append(slices.Clone(patch.duplicateFields), strict...)
		err = c.applyFieldValidation(strict, fieldValidation)
	}
	if err != nil {
		return nil, invalidPatch(err)
	}
	putBack(obj)
	if err := c.checkPatchedKind(obj, current, patch); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(c.kind)
	return obj, c.checkPatched(obj, current)
}

// checkPatchedKind refuses a patch that changes the object's kind, where it counts.
func (c *call) checkPatchedKind(obj, current core.Object, patch patcher) error {
	switch {
	case c.jsonOnly && c.subresource == "status":
		// Only the status is used, so the patch's identity of the object is ignored.
		obj.SetUID(current.GetUID())
	case c.jsonOnly:
		return checkUnstructuredKindKept(obj, c.kind)
	case !patch.keepsKind:
		if err := checkKindKept(obj, c.kind); err != nil {
			return invalidPatch(err)
		}
		if kind, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok && kind.APIVersion == "" {
			// Upstream does not find fields in an object without a version.
			return c.nameMissing()
		}
	}
	return nil
}

// checkPatched refuses a patch that changes the object's identity.
func (c *call) checkPatched(obj, current core.Object) error {
	if err := c.checkNameAndNamespace(obj); err != nil {
		return err
	}
	if current == nil || obj.GetUID() == current.GetUID() || obj.GetUID() == "" {
		return nil
	}
	if c.subresource == "scale" {
		resource := schema.GroupResource{Group: c.resource.Group, Resource: c.resource.Name + "/scale"}
		return apierrors.NewConflict(resource, c.name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v",
			obj.GetUID(), current.GetUID()))
	}
	if err := registry.CheckVersion(c.groupResource(), obj, current); err != nil {
		return err
	}
	return apierrors.NewInvalid(c.kind.GroupKind(), c.name, field.ErrorList{
		field.Invalid(field.NewPath("metadata", "uid"), obj.GetUID(), "field is immutable"),
	})
}

func (c *call) decodePatched(text []byte, fieldValidation string) (obj core.Object, strict []error, err error) {
	if err := bodylimit.JSON(text); err != nil {
		return nil, nil, err
	}
	obj = c.store.New()
	if err := checkJSONQuantities(text, obj); err != nil {
		return nil, nil, err
	}
	if c.jsonOnly {
		return c.decodeAnyKind(text, c.kind)
	}
	strict, err = unmarshal(text, obj, fieldValidation)
	return obj, strict, err
}

// patcher is a decoded patch.
type patcher struct {
	apply func([]byte) ([]byte, error)
	// fields are the fields that the patch touches; nil if unknown.
	fields *patchedFields
	// duplicateFields are duplicate fields in the patch itself.
	duplicateFields []error
	// keepsKind: the patch's kind is ignored.
	keepsKind bool
}

// patcher reads the request's patch.
func (c *call) patcher(media types.PatchType) (patcher, error) {
	body, err := c.readBody()
	if err != nil {
		return patcher{}, err
	}
	audit.RequestPatch(c.ctx, body)
	patch, err := readPatch(media, body, c.store.New)
	if apierrors.IsBadRequest(err) && !errors.Is(err, errNoPatch) { // upstream looks for the object first
		return patcher{apply: func([]byte) ([]byte, error) { return nil, err }}, nil
	}
	return patch, err
}

// readPatch reads a patch of an object of the kind that newObject makes.
func readPatch(media types.PatchType, body []byte, newObject func() core.Object) (out patcher, err error) {
	if !json.Valid(body) {
		return patcher{}, errNoPatch
	}
	if depth := depthOf(body); depth > maxPatchDepth {
		return patcher{}, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the patch is nested %d levels deep; at most %d are accepted",
			depth, maxPatchDepth))
	}
	switch media {
	case types.JSONPatchType:
		out, err = jsonPatcher(body)
	case types.MergePatchType:
		out, err = mergePatcher(body)
	default:
		out, err = strategicPatcher(body, newObject())
	}
	return out, err
}

var errNoPatch = apierrors.NewBadRequest("invalid JSON patch")

// patchTypes are the formats that the resource accepts.
func (c *call) patchTypes() []string {
	if c.custom {
		return jsonOnlyPatchTypes
	}
	return patchTypes
}

var (
	patchTypes = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType),
		string(types.ApplyYAMLPatchType)}
	jsonOnlyPatchTypes = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
)

// unrestorable says, in upstream's words, why the result of a strategic merge patch
// is not an object of the kind: upstream builds it from fields and not from text.
func unrestorable(text []byte, object core.Object, otherwise error) error {
	var status apierrors.APIStatus
	var fields map[string]any
	if errors.As(otherwise, &status) || kjson.UnmarshalCaseSensitivePreserveInts(text, &fields) != nil {
		return otherwise
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object); err != nil {
		return err
	}
	return otherwise
}

// invalidPatch is the error for a patch whose result is not an object of the
// kind. It does not show the object, which may hold secrets.
func invalidPatch(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsBadRequest(err) {
		return err
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), field.OmitValueType{}, err.Error()),
	})
}
