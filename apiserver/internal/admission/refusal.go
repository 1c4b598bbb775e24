package admission

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusal turns a plugin's plain error into 403 Forbidden and leaves status
// errors as they are.
func refusal(a *Attributes, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return apierrors.NewForbidden(a.Resource.GVR().GroupResource(), a.Name, err)
}
