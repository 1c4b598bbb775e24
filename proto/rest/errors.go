package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxErrorBody bounds what is read of an answer that says no.
const maxErrorBody = 64 << 10

// statusError reads the answer's metav1.Status, or makes one for answers that
// carry none (a proxy's, say), so that callers meet one kind of error. It closes the body.
func statusError(resp *http.Response, method string) error {
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
	return apierrors.NewGenericServerResponse(resp.StatusCode, strings.ToLower(method), schema.GroupResource{}, "", message, 0, true)
}
