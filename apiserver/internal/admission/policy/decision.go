package policy

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
)

// decision is the consequence of one of a policy's expressions that did not hold.
type decision struct {
	// index is that of the expression among the policy's validations.
	index   int
	message string
	reason  metav1.StatusReason
	// failure is the kind of error, for the metrics.
	failure failure
}

// codes are the HTTP codes of the reasons that policies can give.
var codes = map[metav1.StatusReason]int32{
	metav1.StatusReasonForbidden:             http.StatusForbidden,
	metav1.StatusReasonInvalid:               http.StatusUnprocessableEntity,
	metav1.StatusReasonRequestEntityTooLarge: http.StatusRequestEntityTooLarge,
}

// refusalError is the answer to the client. whole is the message with its context;
// told is the policy's own part of it.
func refusalError(a *admission.Attributes, code int32, reason metav1.StatusReason, whole, told string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: whole,
		Details: &metav1.StatusDetails{
			Name: a.NameOrUnknown(), Group: a.Resource.Group, Kind: a.Resource.Name,
			Causes: []metav1.StatusCause{{Message: told}},
		},
	}}
}

// forbiddenMessage words the message like every refusal of admission.
func forbiddenMessage(a *admission.Attributes, told string) string {
	return fmt.Sprintf("%s %q is forbidden: %s", a.Resource.GVR().GroupResource(), a.NameOrUnknown(), told)
}
