package admission

import (
	"cmp"
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// toForbidden turns a plugin's plain error into 403 Forbidden and leaves status
// errors as they are.
func toForbidden(a *Attributes, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return apierrors.NewForbidden(a.Resource.GVR().GroupResource(), a.NameOrUnknown(), err)
}

// NameOrUnknown is the object's name in refusals: an object deleted with a
// collection is not requested by name.
func (a *Attributes) NameOrUnknown() string { return cmp.Or(a.Name, "Unknown") }

// TimeoutError is the answer to a request whose time is up, or whose client has gone, while a webhook
// or a policy is asked: no failure policy applies to that.
func TimeoutError(ctx context.Context) error {
	return apierrors.NewTimeoutError("request did not complete within requested timeout - "+ctx.Err().Error(), 0)
}
