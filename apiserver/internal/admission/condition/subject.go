package condition

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/lazy"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/celexpression"
	"kctl/proto/core"
)

// Subject is a request as expressions see it. It is not safe for concurrent use.
type Subject struct {
	variables map[string]any
}

// subjectInput is everything that expressions see of a request.
type subjectInput struct {
	attributes *admission.Attributes
	target     match.Target
	// form has the object in the request and the stored one, in the form of the
	// target.
	form       *Form
	namespace  *core.Namespace // nil for objects without one
	authorizer authz.Authorizer
}

func (r subjectInput) subject() (*Subject, error) {
	s := &Subject{variables: map[string]any{
		requestVar:    requestVariable(r.attributes, r.target),
		authorizerVar: celexpression.Authorizer(r.attributes.User, r.authorizer),
		resourceVar:   celexpression.ResourceAuthorizer(r.attributes.User, r.authorizer, requestResource{r.attributes}),
		paramsVar:     types.NullValue,
	}}
	for name, obj := range map[string]runtime.Object{objectVar: r.form.Object, oldObjectVar: r.form.Old} {
		content, err := unstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.variables[name] = content
	}
	var namespace runtime.Object // not an interface that holds nil
	if r.namespace != nil {
		namespace = r.namespace
	}
	content, err := unstructured(namespace)
	if err != nil {
		return nil, err
	}
	s.variables[namespaceVar] = content
	return s, nil
}

// WithParams is the same request with a parameter object, which is shared and
// may be nil.
func (s *Subject) WithParams(params map[string]any) *Subject {
	if params == nil {
		return s
	}
	return s.withVariable(paramsVar, params)
}

func (s *Subject) withVariable(name string, value any) *Subject {
	with := &Subject{variables: maps.Clone(s.variables)}
	with.variables[name] = value
	return with
}

// unstructured is an object as expressions see it: its fields as in JSON.
func unstructured(obj runtime.Object) (any, error) {
	if obj == nil {
		return types.NullValue, nil
	}
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// requestVariable is the value of "request", without empty fields.
func requestVariable(a *admission.Attributes, target match.Target) map[string]any {
	own := a.Kind()
	out := map[string]any{
		"kind": gvkMap(target.Kind(a)), "requestKind": gvkMap(own),
		"resource": gvrMap(target.GVR()), "requestResource": gvrMap(a.Resource.GVR()),
		"operation": string(a.Operation), "dryRun": a.DryRun, "userInfo": map[string]any{},
	}
	for field, value := range map[string]string{
		"subResource": target.Subresource, "requestSubResource": a.Subresource, "name": a.Name, "namespace": match.NamespaceOf(a),
	} {
		if value != "" {
			out[field] = value
		}
	}
	if a.User != nil {
		user, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.User)
		if err == nil { // it is made of strings
			out["userInfo"] = user
		}
	}
	if a.Options != nil {
		if options, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Options); err == nil {
			out["options"] = options
		}
	}
	return out
}

func gvkMap(k schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func gvrMap(r schema.GroupVersionResource) map[string]any {
	return map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
}

// requestResource is the resource of authorizer.requestResource.
type requestResource struct{ *admission.Attributes }

func (r requestResource) GetName() string                          { return r.Name }
func (r requestResource) GetNamespace() string                     { return r.Namespace }
func (r requestResource) GetResource() schema.GroupVersionResource { return r.Resource.GVR() }
func (r requestResource) GetSubresource() string                   { return r.Subresource }

// Variable is a compiled variable of a policy.
type Variable struct {
	Name string
	Expression
}

// WithVariables is the same request with a policy's variables, each of which is
// evaluated when it is first used.
func (s *Subject) WithVariables(ctx context.Context, variables []Variable, budget *celexpression.Budget) *Subject {
	values := lazy.NewMapValue(types.NewObjectType(variablesType))
	with := s.withVariable(variablesVar, values)
	for _, v := range variables {
		values.Append(v.Name, func(*lazy.MapValue) ref.Val {
			value, err := v.evaluate(ctx, with, budget)
			if err != nil {
				return types.NewErr("composited variable %q fails to evaluate: %v", v.Name, err)
			}
			return value
		})
	}
	return with
}
