package reviews

import (
	"context"
	"reflect"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Versions are those of the reviews.
var Versions = []schema.GroupVersion{authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion}

// Options are the authenticators and authorizers that reviews use.
type Options struct {
	Tokens     authn.TokenAuthenticator // nil if no kind of token is accepted
	Authorizer authz.Authorizer
	Rules      Rules
	Clock      clock.PassiveClock
}

// Served are the reviews.
func Served(o Options) []handlers.CreateOnly {
	a := access{o.Authorizer}
	tokens := o.Tokens
	if tokens == nil {
		tokens = authn.Tokens(nil)
	}
	authentication := func(name, kind string) core.Resource {
		return core.Resource{Group: authenticationv1.GroupName, Version: "v1", Name: name, Kind: kind}
	}
	authorization := func(name, kind string, namespaced bool) core.Resource {
		return core.Resource{Group: authorizationv1.GroupName, Version: "v1", Name: name, Kind: kind, Namespaced: namespaced}
	}
	return []handlers.CreateOnly{
		review(o.Clock, authentication("tokenreviews", "TokenReview"), tokenReview(tokens)),
		review(o.Clock, authentication("selfsubjectreviews", "SelfSubjectReview"), selfReview(o.Clock)),
		review(o.Clock, authorization("subjectaccessreviews", "SubjectAccessReview", false), a.subject),
		review(o.Clock, authorization("selfsubjectaccessreviews", "SelfSubjectAccessReview", false), a.self),
		review(o.Clock, authorization("selfsubjectrulesreviews", "SelfSubjectRulesReview", false), rulesReview(o.Rules)),
		review(o.Clock, authorization("localsubjectaccessreviews", "LocalSubjectAccessReview", true), a.local),
	}
}

// review is one kind of question, which answer fills in.
func review[T any, P interface {
	*T
	core.Object
}](clock clock.PassiveClock, resource core.Resource, answer func(ctx context.Context, namespace string, obj P) error) handlers.CreateOnly {
	return handlers.CreateOnly{Resource: resource, Subresource: registry.Subresource{
		Kind: resource.GVK(),
		New:  func() runtime.Object { return P(new(T)) },
		FieldTracker: managedfields.New(managedfields.Options{
			Kind:   resource.GVK(),
			Schema: func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeFor[T]()) },
			New:    func() core.Object { return P(new(T)) },
			Reset:  map[string][]string{"": {"status"}},
			Clock:  clock,
		}),
		Create: func(ctx context.Context, namespace, _ string, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
			return obj, answer(ctx, namespace, obj.(P))
		},
	}}
}
