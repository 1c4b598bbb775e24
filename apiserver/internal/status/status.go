package status

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of is the Status of an error; one without a Status is an internal error.
func Of(err error) *metav1.Status {
	var known apierrors.APIStatus
	var status metav1.Status
	if errors.As(err, &known) {
		status = known.Status()
	} else {
		status = apierrors.NewInternalError(err).Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

// WithoutReason is an error of which clients see 500 and the message alone. kube-apiserver answers so where it
// meets an error that it does not expect; apierrors.NewInternalError gives a reason and words of its own.
func WithoutReason(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message,
	}}
}

// JSON is the Status of an error as a watch sends it.
func JSON(err error) []byte { return encodeJSON(Of(err)) }

// encodeJSON is a Status in JSON.
func encodeJSON(status *metav1.Status) []byte {
	text, err := json.Marshal(status)
	if err != nil { // it is made of strings and numbers
		return []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	return text
}
