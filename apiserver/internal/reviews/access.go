package reviews

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// access answers with an authorizer's decision.
type access struct{ authorizer authz.Authorizer }

func (a access) subject(ctx context.Context, _ string, obj *authorizationv1.SubjectAccessReview) error {
	if err := invalid(append(validateSpec(&obj.Spec), validateMetadata(obj.ObjectMeta)...)); err != nil {
		return err
	}
	return a.decide(ctx, &obj.Spec, &obj.Status)
}

func (a access) local(ctx context.Context, namespace string, obj *authorizationv1.LocalSubjectAccessReview) error {
	if obj.Namespace != "" && obj.Namespace != namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	obj.Namespace = namespace
	if err := invalid(validateLocal(obj)); err != nil {
		return err
	}
	return a.decide(ctx, &obj.Spec, &obj.Status)
}

func (a access) self(ctx context.Context, _ string, obj *authorizationv1.SelfSubjectAccessReview) error {
	errs := validateAttributes(obj.Spec.ResourceAttributes, obj.Spec.NonResourceAttributes)
	if err := invalid(append(errs, validateMetadata(obj.ObjectMeta)...)); err != nil {
		return err
	}
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

func (a access) decide(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec,
	status *authorizationv1.SubjectAccessReviewStatus) error {
	attributes, ignored := attributesOf(spec)
	decision, reason, err := a.authorizer.Authorize(ctx, attributes)
	*status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authz.Allow,
		Denied:  decision == authz.Deny,
		Reason:  reason,
	}
	if err := errors.Join(append(ignored, err)...); err != nil {
		status.EvaluationError = err.Error()
	}
	return nil
}

// attributesOf are the attributes of the question. An unreadable selector is
// left out, which can only make the decision stricter.
func attributesOf(spec *authorizationv1.SubjectAccessReviewSpec) (_ *authz.Attributes, ignored []error) {
	user := &request.User{Username: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string]authenticationv1.ExtraValue{}}
	for key, value := range spec.Extra {
		user.Extra[key] = authenticationv1.ExtraValue(value)
	}
	resource, path := spec.ResourceAttributes, spec.NonResourceAttributes
	if path != nil {
		return &authz.Attributes{User: user, Info: request.Info{Verb: path.Verb, Path: path.Path}}, nil
	}
	info := request.Info{
		Resource: true, Verb: resource.Verb, APIGroup: resource.Group, APIVersion: resource.Version,
		Namespace: resource.Namespace, ResourceName: resource.Resource, Subresource: resource.Subresource, Name: resource.Name,
	}
	if resource.FieldSelector != nil {
		var err error
		if info.Fields, err = selectorOf(resource.FieldSelector); err != nil {
			ignored = append(ignored, errors.New("spec.resourceAttributes.fieldSelector ignored due to parse error"))
		}
	}
	if resource.LabelSelector != nil {
		var err error
		info.LabelSelector, err = labelSelectorText(resource.LabelSelector)
		switch {
		case err != nil && info.LabelSelector != "":
			ignored = append(ignored, errors.New("spec.resourceAttributes.labelSelector partially ignored due to parse error"))
		case err != nil:
			ignored = append(ignored, errors.New("spec.resourceAttributes.labelSelector ignored due to parse error"))
		}
	}
	return &authz.Attributes{User: user, Info: info}, ignored
}

// selectorOf uses the requirements that restrict a request to one value.
// Leaving out others can only make a decision stricter.
func selectorOf(a *authorizationv1.FieldSelectorAttributes) (fields.Selector, error) {
	if a.RawSelector != "" {
		return fields.ParseSelector(a.RawSelector)
	}
	var terms []fields.Selector
	for _, r := range a.Requirements {
		switch r.Operator {
		case metav1.FieldSelectorOpIn:
			if len(r.Values) == 1 {
				terms = append(terms, fields.OneTermEqualSelector(r.Key, r.Values[0]))
			}
		case metav1.FieldSelectorOpNotIn, metav1.FieldSelectorOpExists, metav1.FieldSelectorOpDoesNotExist:
		default:
			return nil, fmt.Errorf("%q is not a valid field selector operator", r.Operator)
		}
	}
	if len(terms) == 0 {
		return nil, nil
	}
	return fields.AndSelectors(terms...), nil
}

// labelSelectorText is a label selector as a request for a collection would have it. Of
// requirements, those are left out that can't be read.
func labelSelectorText(a *authorizationv1.LabelSelectorAttributes) (string, error) {
	if a.RawSelector != "" {
		if _, err := labels.Parse(a.RawSelector); err != nil {
			return "", err
		}
		return a.RawSelector, nil
	}
	var all labels.Requirements
	var errs []error
	for i := range a.Requirements {
		one, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: a.Requirements[i : i+1]})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		requirements, _ := one.Requirements()
		all = append(all, requirements...)
	}
	// Added at once: each Add copies and sorts what is there.
	return labels.NewSelector().Add(all...).String(), errors.Join(errs...)
}

// Rules lists what a user may do in a namespace.
type Rules interface {
	Rules(ctx context.Context, user *request.User, namespace string) authorizationv1.SubjectRulesReviewStatus
}

func rulesReview(rules Rules) func(context.Context, string, *authorizationv1.SelfSubjectRulesReview) error {
	return func(ctx context.Context, _ string, obj *authorizationv1.SelfSubjectRulesReview) error {
		if obj.Spec.Namespace == "" {
			return apierrors.NewBadRequest("no namespace on request")
		}
		// Upstream's answer does not contain the question either.
		*obj = authorizationv1.SelfSubjectRulesReview{TypeMeta: obj.TypeMeta, Status: rules.Rules(ctx, request.UserFrom(ctx), obj.Spec.Namespace)}
		return nil
	}
}
