package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	library "gopkg.in/evanphx/json-patch.v4"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	celmutation "k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/jsonpatch"
	"kctl/proto/core"
)

// mutationTarget is the object of a request as the mutations of one policy change it,
// one after the other.
type mutationTarget struct {
	*evaluation
	attributes *admission.Attributes
	forms      *condition.Forms
	budget     *celexpression.Budget // of all of them together
}

// mutate makes one change. Variables are evaluated again for each, since they
// may depend on earlier changes.
func (m *Mutating) mutate(ctx context.Context, c mutationTarget, by *mutation) error {
	subject, err := c.forms.Subject(ctx, c.target)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	subject = subject.WithParams(c.params).WithVariables(ctx, c.variables, c.budget)
	value, err := by.Evaluate(ctx, subject, c.budget)
	if err != nil {
		return &mutationError{err}
	}
	var changed core.Object
	if by.kind == admissionregistrationv1.PatchTypeJSONPatch {
		changed, err = applyPatch(ctx, value, c)
	} else {
		changed, err = m.mergeConfiguration(ctx, value, c)
	}
	if err != nil || changed == nil {
		return err
	}
	if err := c.attributes.Replace(changed); err != nil {
		return err
	}
	c.forms.Forget()
	return nil
}

// mergeConfiguration returns the object with an ApplyConfiguration merged into it.
func (m *Mutating) mergeConfiguration(ctx context.Context, value ref.Val, c mutationTarget) (core.Object, error) {
	configuration, ok := value.(*dynamic.ObjectVal)
	if !ok {
		return nil, &mutationError{fmt.Errorf("the expression made a %s and no Object", value.Type().TypeName())}
	}
	if err := configuration.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, &mutationError{fmt.Errorf("type mismatch: %w", err)}
	}
	content, ok := configuration.Value().(map[string]any)
	if !ok {
		return nil, &mutationError{errors.New("the expression made an Object that is none in JSON")}
	}
	of, err := c.forms.Of(ctx, c.target)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	object, ok := of.Object.(core.Object)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("a %T cannot be changed", of.Object))
	}
	kind := c.target.Kind(c.attributes)
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	merged, err := m.mergers.get(c.attributes, object, kind).Merge(object, content)
	if err != nil {
		return nil, &mutationError{fmt.Errorf("error applying patch: %w", err)}
	}
	return c.forms.ConvertBack(ctx, merged, c.target)
}

// applyPatch returns the object after the operations of a JSON patch, nil if one of its
// tests fails.
func applyPatch(ctx context.Context, value ref.Val, c mutationTarget) (core.Object, error) {
	patch, err := operations(value)
	if err != nil {
		return nil, &mutationError{fmt.Errorf("JSON Patch: %w", err)}
	}
	of, err := c.forms.Encoded(ctx, c.target)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	text, err := jsonpatch.Apply(patch, of.Text)
	switch {
	case errors.Is(err, library.ErrTestFailed):
		return nil, nil
	case err != nil:
		return nil, &mutationError{fmt.Errorf("JSON Patch: %w", err)}
	}
	changed, err := c.forms.Decode(ctx, text, c.target, true)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return changed, nil
}

// patchOperation is one of a patch, in JSON.
type patchOperation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// operations reads the result of a JSONPatch expression.
func operations(value ref.Val) (library.Patch, error) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("the expression made a %s and no list", value.Type().TypeName())
	}
	var all []patchOperation
	for i := list.Iterator(); i.HasNext() == types.True; {
		made, ok := i.Next().(*celmutation.JSONPatchVal)
		if !ok {
			return nil, errors.New("the expression made a list of other things than JSONPatches")
		}
		if len(all) == jsonpatch.MaxOperations {
			return nil, fmt.Errorf("the patch has more than %d operations", jsonpatch.MaxOperations)
		}
		text, err := jsonOf(made.Val)
		if err != nil {
			return nil, err
		}
		all = append(all, patchOperation{made.Op, made.Path, made.From, text})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if all == nil {
		return nil, nil
	}
	return library.DecodePatch(text)
}

func jsonOf(value ref.Val) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	native, err := value.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, err
	}
	return native.(*structpb.Value).MarshalJSON()
}
