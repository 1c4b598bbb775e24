// Package webhook asks an external service whose a bearer token is, with a
// TokenReview (Kubernetes docs, "Webhook Token Authentication").
//
// The authentication chain calls it after all other kinds of token, because it
// is the only one that costs a request. It caches nothing: authn.Cached is in
// front of it.
package webhook

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
)

// Service answers reviews: a webhookclient.Service.
type Service interface {
	Ask(ctx context.Context, question, answer any) error
}

// Authenticator is an authn.TokenAuthenticator.
type Authenticator struct {
	Service   Service
	Version   string   // of the TokenReview, which has the same form in all
	Audiences []string // the audiences of tokens for which the service names none: the API
}

// AuthenticateToken implements authn.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	if len(wanted) == 0 {
		wanted = a.Audiences
	}
	version := authenticationv1.GroupName + "/" + a.Version
	question := authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: wanted},
	}
	var answer authenticationv1.TokenReview
	if err := a.Service.Ask(ctx, &question, &answer); err != nil {
		return nil, nil, false, fmt.Errorf("token webhook: %w", err)
	}
	if answer.APIVersion != version || answer.Kind != question.Kind {
		return nil, nil, false, fmt.Errorf("token webhook: the answer is a %s %s instead of a %s %s",
			answer.APIVersion, answer.Kind, version, question.Kind)
	}
	status := &answer.Status
	if !status.Authenticated {
		if status.Error != "" {
			return nil, nil, false, fmt.Errorf("token webhook: %s", status.Error)
		}
		return nil, nil, false, nil
	}
	if status.User.Username == "" {
		return nil, nil, false, errNoUser
	}
	has := status.Audiences
	if len(has) == 0 {
		has = a.Audiences
	}
	audiences, err := authn.ForAPI(has, wanted)
	if err != nil {
		return nil, nil, false, fmt.Errorf("token webhook: %w", err)
	}
	return &status.User, audiences, true, nil
}

var errNoUser = errors.New("token webhook: it accepted the token without naming a user")
