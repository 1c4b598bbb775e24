package celexpression

import (
	"context"

	"github.com/google/cel-go/common/types/ref"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// Authorizer is the value of a variable "authorizer" (library.AuthorizerType),
// with which an expression can ask what a user may do.
func Authorizer(who *request.User, by authz.Authorizer) ref.Val {
	return library.NewAuthorizerVal(userInfo(who), authorizerAdapter{by})
}

// ResourceAuthorizer is the value of "authorizer.requestResource"
// (library.ResourceCheckType), already bound to one resource.
func ResourceAuthorizer(who *request.User, by authz.Authorizer, resource library.Resource) ref.Val {
	return library.NewResourceAuthorizerVal(userInfo(who), authorizerAdapter{by}, resource)
}

// userInfo is a user in the form that the library wants.
func userInfo(who *request.User) user.Info {
	if who == nil { // one of the server's own loops
		return &user.DefaultInfo{}
	}
	extra := make(map[string][]string, len(who.Extra))
	for key, values := range who.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra}
}

// authorizerAdapter adapts our authorizers to the library.
type authorizerAdapter struct{ authz.Authorizer }

func (a authorizerAdapter) Authorize(ctx context.Context, question authorizer.Attributes) (authorizer.Decision, string, error) {
	info := request.Info{
		Resource: question.IsResourceRequest(), Path: question.GetPath(), Verb: question.GetVerb(),
		APIGroup: question.GetAPIGroup(), APIVersion: question.GetAPIVersion(),
		Namespace: question.GetNamespace(), ResourceName: question.GetResource(),
		Subresource: question.GetSubresource(), Name: question.GetName(),
	}
	if requirements, err := question.GetFieldSelector(); err == nil && len(requirements) > 0 {
		info.Fields = selector(requirements)
	}
	if requirements, err := question.GetLabelSelector(); err == nil && len(requirements) > 0 {
		info.LabelSelector = labels.NewSelector().Add(requirements...).String()
	}
	decision, reason, err := a.Authorizer.Authorize(ctx, &authz.Attributes{User: userOf(question.GetUser()), Info: info})
	switch decision {
	case authz.Allow:
		return authorizer.DecisionAllow, reason, err
	case authz.NoOpinion:
		return authorizer.DecisionNoOpinion, reason, err
	}
	return authorizer.DecisionDeny, reason, err
}

func selector(requirements fields.Requirements) fields.Selector {
	terms := make([]fields.Selector, 0, len(requirements))
	for _, r := range requirements {
		if r.Operator == "!=" {
			terms = append(terms, fields.OneTermNotEqualSelector(r.Field, r.Value))
			continue
		}
		terms = append(terms, fields.OneTermEqualSelector(r.Field, r.Value))
	}
	return fields.AndSelectors(terms...)
}

func userOf(info user.Info) *request.User {
	who := &request.User{Username: info.GetName(), UID: info.GetUID(), Groups: info.GetGroups()}
	for key, values := range info.GetExtra() {
		if who.Extra == nil {
			who.Extra = make(map[string]authenticationv1.ExtraValue, len(info.GetExtra()))
		}
		who.Extra[key] = values
	}
	return who
}
