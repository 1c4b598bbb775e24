package status

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err     error
		code    int32
		reason  metav1.StatusReason
		message string
	}{
		{fmt.Errorf("list pods: %w", apierrors.NewBadRequest("no")), 400, metav1.StatusReasonBadRequest, "no"},
		{errors.New("the disk is full"), 500, metav1.StatusReasonInternalError, "Internal error occurred: the disk is full"},
		{&apierrors.StatusError{}, 500, "", ""}, // an error without a code is not a success
	} {
		got := Of(c.err)
		if got.Kind != "Status" || got.APIVersion != "v1" || got.Status != metav1.StatusFailure || got.Code != c.code || got.Reason != c.reason ||
			got.Message != c.message {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
