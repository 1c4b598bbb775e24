package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unanswered reports whether err leaves open what became of a request: no answer
// came, or one that does not say whether the server did, or is still doing, what it
// was asked for. 503 and 429 mean that it did not, but an earlier attempt at the
// same request may have been carried out; the caller can only ask again.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch status.Status().Code {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
			http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var network net.Error // *url.Error, which http.Client returns, is one
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// maxErrorBody bounds how many bytes of an error answer are read.
const maxErrorBody = 64 << 10

// statusError reads the answer's metav1.Status, or makes one for answers that
// carry none (a proxy's, say, or where no such resource is), so that callers meet one kind
// of error. It closes the body.
func statusError(resp *http.Response, call *call) error {
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err == nil && status.Kind == "Status" && status.Status != metav1.StatusSuccess {
		if status.Code == 0 {
			status.Code = int32(resp.StatusCode)
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	message := strings.TrimSpace(string(data))
	if message == "" {
		message = fmt.Sprintf("the server answered %s", resp.Status)
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, strings.ToLower(call.method), call.resource, call.name, message, 0, true)
}
