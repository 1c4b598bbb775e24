package handlers

import (
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/managedfields"
	"kctl/proto/core"
	"kctl/proto/yamlsize"
)

// apply merges what a manager wants into the existing object, or creates it
// (Kubernetes docs, "Server-Side Apply").
func (c *call) apply(options *metav1.PatchOptions) error {
	if c.tracker == nil {
		return unsupportedMediaType(c.contentType(), c.resource.Name+" can't be applied on the server's side", c.patchTypes()...)
	}
	applied, err := c.decodeApplied(options.FieldValidation)
	if err != nil {
		return err
	}
	by := c.fieldManager(options.FieldManager)
	change := func(current core.Object) (core.Object, error) {
		if current == nil {
			if err := c.mayCreate(applied); err != nil {
				return nil, err
			}
		}
		merged, err := c.tracker.Apply(current, applied.DeepCopy(), by, options.Force != nil && *options.Force)
		if err != nil {
			return nil, err
		}
		if c.jsonOnly && current != nil && managedfields.AllElseEqual(merged, current) {
			current.SetManagedFields(merged.GetManagedFields())
			merged = current // so that it gets no defaults of this version, and is not written
		}
		return merged, c.checkPatched(merged, current)
	}
	admit := c.admit(admission.Update, options, options.DryRun)
	// The merge has already made the applier the owner.
	admit.TrackFields = func(core.Object, core.Object, []byte) {}
	admit.CreatesIfMissing = true
	e, created, err := c.store.Update(c.ctx, c.target(), change, guardManagedFields(admit), updateOptionsOf(options))
	return c.respondUpdated(e, created, err)
}

// decodeApplied reads the body, which is YAML or its subset JSON.
func (c *call) decodeApplied(fieldValidation string) (*unstructured.Unstructured, error) {
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	audit.RequestPatch(c.ctx, body)
	if err := yamlsize.Check(body, c.MaxBody); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if err := bodylimit.Parts(body); err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	if fieldValidation == metav1.FieldValidationStrict {
		if err := yaml.UnmarshalStrict(body, &out.Object, keepNumbersAsText); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
		}
	} else {
		if err := yaml.Unmarshal(body, &out.Object, keepNumbersAsText); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	if out.Object == nil {
		out.Object = map[string]any{}
	}
	if err := c.convertNumbers(out.Object); err != nil {
		return nil, err
	}
	if kind := out.GroupVersionKind(); kind != c.kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", kind))
	}
	if fieldValidation != metav1.FieldValidationIgnore {
		if _, err := yaml.YAMLToJSONStrict(body); err != nil {
			c.warnOfError(err)
		}
	}
	return out, nil
}

// keepNumbersAsText keeps numbers as text, to be interpreted later: a float64 would
// lose the last digits of large ones, and is not an integer to its reader.
func keepNumbersAsText(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// convertNumbers gives numbers that were kept as text their types, unless one of them is
// a quantity beyond the bounds.
func (c *call) convertNumbers(applied map[string]any) error {
	text, err := json.Marshal(applied)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if err := checkJSONQuantities(text, c.store.New()); err != nil {
		return err
	}
	if err := utiljson.ConvertMapNumbers(applied, 0); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return nil
}

// mayCreate refuses to create an object if the request was meant for one that is gone.
func (c *call) mayCreate(applied *unstructured.Unstructured) error {
	if c.subresource != "" {
		return apierrors.NewNotFound(c.groupResource(), c.name)
	}
	if uid := applied.GetUID(); uid != "" {
		return apierrors.NewConflict(c.groupResource(), c.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	return nil
}

func updateOptionsOf(o *metav1.PatchOptions) *metav1.UpdateOptions {
	return &metav1.UpdateOptions{
		TypeMeta: optionsType("UpdateOptions"),
		DryRun:   o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation,
	}
}
