package serviceaccount

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	tokens "kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/registry"
	requestcontext "kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Bounds on a token's lifetime, and the default.
const (
	minTokenSeconds     = 10 * 60
	maxTokenSeconds     = 1 << 32
	defaultTokenSeconds = int64(60 * 60)
)

var tokenKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// Issuer makes tokens.
type Issuer interface {
	Audiences() []string
	// MostSeconds is the longest lifetime of a token; 0 for any.
	MostSeconds() int64
	Token(ctx context.Context, sa *core.ServiceAccount, spec authenticationv1.TokenRequestSpec, bound tokens.Bound) (token string,
		expiry time.Time, err error)
}

// TokenSources are where a token's bound objects are looked up.
type TokenSources struct {
	ServiceAccounts, Pods, Secrets, Nodes registry.Resource
	Clock                                 clock.PassiveClock
}

// Token is serviceaccounts/token: it issues tokens and stores nothing.
func Token(issuer Issuer, from TokenSources) registry.Subresource {
	return registry.Subresource{
		Name: "token", Kind: tokenKind,
		New: func() runtime.Object {
			seconds := defaultTokenSeconds
			return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
		},
		FieldTracker: managedfields.New(managedfields.Options{
			Kind:   tokenKind,
			Schema: func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeFor[authenticationv1.TokenRequest]()) },
			New:    func() core.Object { return new(authenticationv1.TokenRequest) },
			Reset:  map[string][]string{"token": {"status"}},
			Clock:  from.Clock,
		}),
		Create: func(ctx context.Context, namespace, name string, obj runtime.Object, o *metav1.CreateOptions) (runtime.Object, error) {
			request := obj.(*authenticationv1.TokenRequest)
			if request.Name != "" && request.Name != name {
				return nil, registry.Invalid(tokenKind.GroupKind(), name, field.ErrorList{
					field.Invalid(field.NewPath("metadata", "name"), request.Name, "must match the service account name if specified"),
				})
			}
			if request.Namespace != "" && request.Namespace != namespace {
				return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
			}
			request = request.DeepCopy()
			request.Namespace, request.Name = namespace, name
			return from.issue(ctx, issuer, request)
		},
	}
}

// issue completes a request for a token of the account with the request's name.
func (from TokenSources) issue(ctx context.Context, issuer Issuer,
	request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	account, err := registry.GetStored[*core.ServiceAccount](ctx, from.ServiceAccounts, request.Namespace, request.Name)
	if err != nil {
		return nil, err
	}
	if request.UID != "" && request.UID != account.UID {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: tokenKind.Group, Resource: tokenKind.Kind}, request.Name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", request.UID, account.UID))
	}
	spec := &request.Spec
	if spec.ExpirationSeconds == nil {
		seconds := defaultTokenSeconds
		spec.ExpirationSeconds = &seconds
	}
	if len(spec.Audiences) == 0 {
		spec.Audiences = issuer.Audiences()
	}
	if errs := validateSpec(spec); len(errs) > 0 {
		return nil, registry.Invalid(tokenKind.GroupKind(), "", errs)
	}
	if most := issuer.MostSeconds(); most > 0 && *spec.ExpirationSeconds > most {
		requestcontext.Warn(ctx, fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", *spec.ExpirationSeconds, most))
		*spec.ExpirationSeconds = most
	}
	var bound tokens.Bound
	if spec.BoundObjectRef != nil {
		if bound, err = from.bind(ctx, account, spec.BoundObjectRef); err != nil {
			return nil, err
		}
	}
	token, expiry, err := issuer.Token(ctx, account, *spec, bound)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("failed to generate token: %w", err))
	}
	request.TypeMeta = metav1.TypeMeta{Kind: tokenKind.Kind, APIVersion: tokenKind.GroupVersion().String()}
	request.UID = account.UID
	request.CreationTimestamp = metav1.NewTime(from.Clock.Now())
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expiry)}
	return request, nil
}

func validateSpec(spec *authenticationv1.TokenRequestSpec) field.ErrorList {
	// A token bound to a webhook configuration is refused with an error about that.
	ofWebhook := spec.BoundObjectRef != nil && strings.HasSuffix(spec.BoundObjectRef.Kind, "WebhookConfiguration")
	at, seconds := field.NewPath("spec", "expirationSeconds"), *spec.ExpirationSeconds
	switch {
	case len(spec.Attestations) > 0 && !ofWebhook:
		return field.ErrorList{field.Invalid(field.NewPath("spec", "attestations"), spec.Attestations,
			"attestations may only be specified with a webhook bound object reference")}
	case seconds < minTokenSeconds:
		return field.ErrorList{field.Invalid(at, seconds, "may not specify a duration less than 10 minutes")}
	case seconds > maxTokenSeconds:
		return field.ErrorList{field.Invalid(at, seconds, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// bind looks up the object that the token is bound to. A pod has to run as the
// account.
func (from TokenSources) bind(ctx context.Context, account *core.ServiceAccount,
	ref *authenticationv1.BoundObjectReference) (tokens.Bound, error) {
	var bound tokens.Bound
	var uid types.UID
	var err error
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	switch kind.GroupKind() { // of any version, and of none
	case core.Pods.GVK().GroupKind():
		if bound.Pod, err = registry.GetStored[*core.Pod](ctx, from.Pods, account.Namespace, ref.Name); err != nil {
			return bound, err
		}
		if bound.Pod.Spec.ServiceAccountName != account.Name {
			return bound, apierrors.NewBadRequest(fmt.Sprintf(
				"cannot bind token for serviceaccount %q to pod running with different serviceaccount name.",
				account.Name))
		}
		uid = bound.Pod.UID
		if node := bound.Pod.Spec.NodeName; node != "" {
			bound.Node, err = registry.GetStored[*core.Node](ctx, from.Nodes, "", node)
			if apierrors.IsNotFound(err) {
				// The pod may outlive its node's object; the name is still valid.
				bound.Node, err = &core.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, nil
			}
		}
	case core.Secrets.GVK().GroupKind():
		if bound.Secret, err = registry.GetStored[*core.Secret](ctx, from.Secrets, account.Namespace, ref.Name); err == nil {
			uid = bound.Secret.UID
		}
	case core.Nodes.GVK().GroupKind():
		if bound.Node, err = registry.GetStored[*core.Node](ctx, from.Nodes, "", ref.Name); err == nil {
			uid = bound.Node.UID
		}
	default:
		return bound, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", kind))
	}
	if err != nil {
		return bound, err
	}
	if ref.UID != "" && ref.UID != uid {
		return bound, apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have "+
				"been deleted and then recreated", ref.UID))
	}
	return bound, nil
}
