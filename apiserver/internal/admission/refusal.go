package admission

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusal turns a plugin's plain error into 403 Forbidden and leaves status
// errors as they are.
func refusal(a *Attributes, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	resource := schema.GroupResource{Group: a.Resource.Group, Resource: a.Resource.Name}
	return apierrors.NewForbidden(resource, a.Name, err)
}
