package kubelet

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// errNoUpgrade refuses a request for a stream that does not ask for one.
var errNoUpgrade = apierrors.NewBadRequest("Upgrade request required")

// Upgraded is the error of an answer to request that neither upgrades, though
// that was asked for, nor refuses to. Such an answer is not the client's to
// have: a redirect would lead it, and what it proves who it is with, to wherever
// a kubelet wants. The words are kube-apiserver's.
func Upgraded(request *http.Request, answer *http.Response) error {
	code := answer.StatusCode
	if !httpstream.IsUpgradeRequest(request) || code == http.StatusSwitchingProtocols || code >= http.StatusBadRequest {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: fmt.Sprintf("invalid upgrade response: status code %d", code),
	}}
}

// unreached is what a request came to that was not answered, or with nothing
// that can be passed on.
func unreached(err error) error {
	if told := apierrors.APIStatus(nil); errors.As(err, &told) {
		return err
	}
	return dialError(err)
}
