package kubeletclient

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/streaming/pkg/httpstream"

	"kctl/apiserver/internal/status"
)

// RequireUpgrade refuses a stream request without an upgrade.
func RequireUpgrade(r *http.Request) error {
	if httpstream.IsUpgradeRequest(r) {
		return nil
	}
	return apierrors.NewBadRequest("Upgrade request required")
}

// CheckUpgraded returns an error for an answer that neither upgrades as requested nor
// refuses. Such an answer must not reach the client: a redirect would lead it,
// with its credentials, wherever a kubelet wants. The words are
// kube-apiserver's.
func CheckUpgraded(request *http.Request, answer *http.Response) error {
	code := answer.StatusCode
	if !httpstream.IsUpgradeRequest(request) || code == http.StatusSwitchingProtocols || code >= http.StatusBadRequest {
		return nil
	}
	return status.WithoutReason(fmt.Sprintf("invalid upgrade response: status code %d", code))
}

// unreachable is the error for a request without an answer, or with one that
// can't be passed on.
func unreachable(err error) error {
	if told := apierrors.APIStatus(nil); errors.As(err, &told) {
		return err
	}
	return dialError(err)
}
