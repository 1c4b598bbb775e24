package reviews

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// access answers with what an authorizer says.
type access struct{ authorizer authz.Authorizer }

func (a access) subject(ctx context.Context, _ string, obj *authorizationv1.SubjectAccessReview) error {
	return a.decide(ctx, &obj.Spec, &obj.Status)
}

func (a access) local(ctx context.Context, namespace string, obj *authorizationv1.LocalSubjectAccessReview) error {
	attributes := obj.Spec.ResourceAttributes
	switch {
	case attributes == nil:
		return apierrors.NewBadRequest("spec.resourceAttributes: must be given in a review that is local to a namespace")
	case obj.Spec.NonResourceAttributes != nil:
		return apierrors.NewBadRequest("spec.nonResourceAttributes: paths are not in a namespace")
	case attributes.Namespace != "" && attributes.Namespace != namespace:
		return apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace: must be %q, as in the request's path", namespace))
	case obj.Namespace != "" && obj.Namespace != namespace:
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.namespace: must be %q, as in the request's path", namespace))
	}
	attributes.Namespace, obj.Namespace = namespace, namespace
	return a.decide(ctx, &obj.Spec, &obj.Status)
}

func (a access) self(ctx context.Context, _ string, obj *authorizationv1.SelfSubjectAccessReview) error {
	user := request.UserFrom(ctx)
	spec := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: obj.Spec.ResourceAttributes, NonResourceAttributes: obj.Spec.NonResourceAttributes,
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extraOf(user),
	}
	return a.decide(ctx, &spec, &obj.Status)
}

func extraOf(user *request.User) map[string]authorizationv1.ExtraValue {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	return extra
}

func (a access) decide(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) error {
	attributes, err := attributesOf(spec)
	if err != nil {
		return err
	}
	decision, reason, err := a.authorizer.Authorize(ctx, attributes)
	*status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authz.Allow,
		Denied:  decision == authz.Deny,
		Reason:  reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return nil
}

func attributesOf(spec *authorizationv1.SubjectAccessReviewSpec) (*authz.Attributes, error) {
	if spec.User == "" && len(spec.Groups) == 0 {
		return nil, apierrors.NewBadRequest("spec.user: a user or at least one group must be given")
	}
	user := &request.User{Username: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string]authenticationv1.ExtraValue{}}
	for key, value := range spec.Extra {
		user.Extra[key] = authenticationv1.ExtraValue(value)
	}
	resource, path := spec.ResourceAttributes, spec.NonResourceAttributes
	switch {
	case (resource == nil) == (path == nil):
		return nil, apierrors.NewBadRequest("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
	case path != nil:
		return &authz.Attributes{User: user, Info: request.Info{Verb: path.Verb, Path: path.Path}}, nil
	}
	info := request.Info{
		Resource: true, Verb: resource.Verb, APIGroup: resource.Group, APIVersion: resource.Version,
		Namespace: resource.Namespace, ResourceName: resource.Resource, Subresource: resource.Subresource, Name: resource.Name,
	}
	if resource.FieldSelector != nil {
		info.Fields = selectorOf(resource.FieldSelector)
	}
	return &authz.Attributes{User: user, Info: info}, nil
}

// selectorOf takes over the requirements that narrow a request to one value.
// Leaving out others can only make a decision stricter.
func selectorOf(a *authorizationv1.FieldSelectorAttributes) fields.Selector {
	if a.RawSelector != "" {
		selector, err := fields.ParseSelector(a.RawSelector)
		if err != nil {
			return nil
		}
		return selector
	}
	var terms []fields.Selector
	for _, r := range a.Requirements {
		if r.Operator == metav1.FieldSelectorOpIn && len(r.Values) == 1 {
			terms = append(terms, fields.OneTermEqualSelector(r.Key, r.Values[0]))
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return fields.AndSelectors(terms...)
}

// Rules lists what a user may do in a namespace.
type Rules interface {
	Rules(ctx context.Context, user *request.User, namespace string) authorizationv1.SubjectRulesReviewStatus
}

func rulesReview(rules Rules) func(context.Context, string, *authorizationv1.SelfSubjectRulesReview) error {
	return func(ctx context.Context, _ string, obj *authorizationv1.SelfSubjectRulesReview) error {
		if obj.Spec.Namespace == "" {
			return apierrors.NewBadRequest("spec.namespace: no namespace on request")
		}
		obj.Status = rules.Rules(ctx, request.UserFrom(ctx), obj.Spec.Namespace)
		return nil
	}
}
