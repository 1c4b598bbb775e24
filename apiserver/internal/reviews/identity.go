package reviews

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// tokenReview determines whose a token is. That it is bad is an answer, not an
// error.
func tokenReview(tokens authn.TokenAuthenticator) func(context.Context, string, *authenticationv1.TokenReview) error {
	return func(ctx context.Context, _ string, obj *authenticationv1.TokenReview) error {
		if obj.Spec.Token == "" {
			return apierrors.NewBadRequest("token is required for TokenReview in authentication")
		}
		user, audiences, ok, err := tokens.AuthenticateToken(ctx, obj.Spec.Token, obj.Spec.Audiences)
		obj.Status = authenticationv1.TokenReviewStatus{Authenticated: ok}
		switch {
		case err != nil:
			obj.Status.Error = err.Error()
		case !ok:
			obj.Status.Error = authn.ErrInvalidToken.Error()
		default:
			obj.Status.User = *user
			obj.Status.User.Groups = append(append([]string(nil), user.Groups...), core.GroupAuthenticated)
			obj.Status.Audiences = audiences
		}
		return nil
	}
}

// selfReview returns the user and the time of the answer, and nothing of what
// came with the question.
func selfReview(clock clock.PassiveClock) func(context.Context, string, *authenticationv1.SelfSubjectReview) error {
	return func(ctx context.Context, _ string, obj *authenticationv1.SelfSubjectReview) error {
		obj.ObjectMeta = metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: clock.Now()}.Rfc3339Copy()}
		obj.Status.UserInfo = *request.UserFrom(ctx)
		return nil
	}
}
