package authz

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Forbidden is the status error for a request that is not allowed, in
// upstream's words, which users and their tools know.
func Forbidden(a *Attributes, reason string) *apierrors.StatusError {
	what := describeRequest(a)
	if reason != "" {
		what += ": " + reason
	}
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Group: a.APIGroup, Kind: a.ResourceName, Name: a.Name},
	}
	resource := schema.GroupResource{Group: a.APIGroup, Resource: a.ResourceName}
	switch {
	case !a.Resource || a.ResourceName == "":
		status.Details = &metav1.StatusDetails{}
		status.Message = "forbidden: " + what
	case a.Name != "":
		status.Message = fmt.Sprintf("%s %q is forbidden: %s", resource, a.Name, what)
	default:
		status.Message = fmt.Sprintf("%s is forbidden: %s", resource, what)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

func describeRequest(a *Attributes) string {
	user := ""
	if a.User != nil {
		user = a.User.Username
	}
	if !a.Resource {
		return fmt.Sprintf("User %q cannot %s path %q", user, a.Verb, a.Path)
	}
	resource := a.ResourceName
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	what := fmt.Sprintf("User %q cannot %s resource %q in API group %q", user, a.Verb, resource, a.APIGroup)
	if a.Namespace != "" {
		return what + fmt.Sprintf(" in the namespace %q", a.Namespace)
	}
	return what + " at the cluster scope"
}
