package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/status"
)

// reviewGroup is the group of AdmissionReview. Its versions differ only in name.
const reviewGroup = "admission.k8s.io/"

// callError: a webhook could not be called, or its answer is invalid. Its failure
// policy decides what becomes of the request.
type callError struct {
	hook  string
	cause error
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %s", e.hook, e.why())
}
func (e *callError) Unwrap() error { return e.cause }

// why is the cause without the webhook. It may repeat what the webhook answered.
func (e *callError) why() string { return status.Shorten(e.cause.Error()) }

// review sends a webhook the request and returns its answer, which is well-formed.
// Errors are callError.
func (h *hook) review(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	response, err := h.post(ctx, request)
	if err != nil {
		return nil, &callError{h.name, err}
	}
	return response, nil
}

func (h *hook) post(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if h.version == "" {
		return nil, errors.New("webhook does not accept known AdmissionReview versions (v1, v1beta1)")
	}
	question := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: reviewGroup + h.version}, Request: request,
	}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	answer, err := h.client.Post(ctx, body)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return nil, fmt.Errorf("failed to call webhook: couldn't get version/kind; json parse error: %w", err)
	}
	if err := h.checkResponse(request.UID, &review); err != nil {
		return nil, err
	}
	return review.Response, nil
}

// checkResponse refuses answers to another request. Reviews of v1beta1 need not have a
// kind or the request's uid: early webhooks sent neither.
func (h *hook) checkResponse(uid types.UID, review *admissionv1.AdmissionReview) error {
	strict := h.version != "v1beta1"
	response := review.Response
	if response == nil {
		return errors.New("received invalid webhook response: webhook response was absent")
	}
	if kind := review.GroupVersionKind(); strict || kind.Kind != "" || kind.Version != "" {
		if review.Kind != "AdmissionReview" || review.APIVersion != reviewGroup+h.version {
			return fmt.Errorf("received invalid webhook response: expected webhook response of %s%s, Kind=AdmissionReview, got %s",
				reviewGroup, h.version, kind)
		}
	}
	if strict && response.UID != uid {
		return fmt.Errorf("received invalid webhook response: expected response.uid=%q, got %q", uid, response.UID)
	}
	if !strict {
		if len(response.Patch) > 0 && response.PatchType == nil {
			jsonPatch := admissionv1.PatchTypeJSONPatch
			response.PatchType = &jsonPatch
		}
		return nil
	}
	switch hasType := ptr.Deref(response.PatchType, "") != ""; {
	case len(response.Patch) > 0 && !hasType:
		return errors.New("received invalid webhook response: webhook returned response.patch but not response.patchType")
	case len(response.Patch) == 0 && hasType:
		return errors.New("received invalid webhook response: webhook returned response.patchType but not response.patch")
	}
	return nil
}

// newRequest describes the request in the form of a target. object and old are
// encoded objects, or nil.
func newRequest(a *admission.Attributes, target match.Target, object, old []byte) (*admissionv1.AdmissionRequest, error) {
	options, err := encodeOptions(a.Options)
	if err != nil {
		return nil, err
	}
	requestKind, requestResource := metav1.GroupVersionKind(a.Kind()), metav1.GroupVersionResource(a.Resource.GVR())
	dryRun := a.DryRun
	request := &admissionv1.AdmissionRequest{
		UID:  types.UID(uuid.NewString()),
		Kind: metav1.GroupVersionKind(target.Kind(a)), Resource: metav1.GroupVersionResource(target.GVR()), SubResource: target.Subresource,
		RequestKind: &requestKind, RequestResource: &requestResource, RequestSubResource: a.Subresource,
		Name: a.Name, Namespace: match.NamespaceOf(a), Operation: admissionv1.Operation(a.Operation), DryRun: &dryRun,
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old}, Options: runtime.RawExtension{Raw: options},
	}
	if a.User != nil {
		request.UserInfo = *a.User
	}
	return request, nil
}

func encodeOptions(options runtime.Object) ([]byte, error) {
	if options == nil {
		return nil, nil
	}
	out, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encode the options: %w", err)
	}
	return out, nil
}

const (
	// maxStatusCode is the highest HTTP status code.
	maxStatusCode = 999
	// maxDenial bounds what a webhook's refusal has besides its message: programs read it.
	maxDenial = 64 << 10
)

// denialError is the answer to the client for a webhook's refusal: the webhook's own
// status, as far as it is one of a refusal and not too long.
func denialError(name string, answered *metav1.Status) error {
	told := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest}
	explanation := ""
	if answered != nil {
		told.Reason, told.Details, told.ListMeta = answered.Reason, answered.Details, answered.ListMeta
		if told.Size() > maxDenial {
			told.Reason, told.Details, told.ListMeta = "", nil, metav1.ListMeta{}
		}
		if answered.Code >= http.StatusBadRequest && answered.Code <= maxStatusCode {
			told.Code = answered.Code
		}
		explanation = status.Shorten(cmp.Or(answered.Message, string(answered.Reason)))
	}
	told.Message = fmt.Sprintf("admission webhook %q denied the request without explanation", name)
	if explanation != "" {
		told.Message = fmt.Sprintf("admission webhook %q denied the request: %s", name, explanation)
	}
	return &apierrors.StatusError{ErrStatus: told}
}
