package authz

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Starting is the last authorizer: none allowed the request, which means
// nothing while the rules are still being read.
type Starting struct{ Ready <-chan struct{} }

// Authorize implements Authorizer.
func (s Starting) Authorize(context.Context, *Attributes) (Decision, string, error) {
	select {
	case <-s.Ready:
		return NoOpinion, "", nil
	default:
		return NoOpinion, "", ErrStarting
	}
}

// ErrStarting asks the client to retry.
var ErrStarting = func() error {
	err := apierrors.NewServiceUnavailable("the server is starting: roles and bindings are still being read")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}()
