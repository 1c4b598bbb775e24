package customresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/webhookclient"
)

// maxAnswer bounds what a webhook may answer with.
const maxAnswer = 64 << 20

// webhook converts objects by calling a user's server.
type webhook struct {
	client   *webhookclient.Client
	versions []string
}

func newWebhook(d *definition, access webhookclient.Access) *webhook {
	hook := d.Spec.Conversion.Webhook
	config := &admissionregistrationv1.WebhookClientConfig{
		URL: hook.ClientConfig.URL, Service: (*admissionregistrationv1.ServiceReference)(hook.ClientConfig.Service),
		CABundle: hook.ClientConfig.CABundle,
	}
	return &webhook{versions: hook.ConversionReviewVersions, client: webhookclient.NewClient(config, access, webhookclient.ClientOptions{
		Timeout: conversionTime, MaxAnswer: maxAnswer, UserAgent: "kube-apiserver-admission", // upstream's too,
	})}
}

// convert sends all objects at once. The answer has them in the same order.
func (w *webhook) convert(ctx context.Context, to string, objects []*object) ([]*object, error) {
	version := w.reviewVersion()
	if version == "" {
		return nil, fmt.Errorf("failed: it speaks ConversionReview %s, and v1 and v1beta1 are spoken here", strings.Join(w.versions, ", "))
	}
	request := &apiextensionsv1.ConversionRequest{UID: types.UID(uuid.NewString()), DesiredAPIVersion: to}
	for _, o := range objects {
		value, err := marshal(o)
		if err != nil {
			return nil, err
		}
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: value})
	}
	review := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.GroupName + "/" + version}, Request: request,
	}
	answer, err := w.call(ctx, review)
	if err != nil {
		return nil, fmt.Errorf("failed: %w", err)
	}
	return readResponse(request, answer, version == "v1")
}

// reviewVersion is the first version of ConversionReview that both sides support, "" if there
// is none. Both versions have the same fields.
func (w *webhook) reviewVersion() string {
	for _, version := range w.versions {
		if version == "v1" || version == "v1beta1" {
			return version
		}
	}
	return ""
}

// readResponse returns the converted objects of an answer. In v1beta1, kind and uid are
// not checked, as in upstream.
func readResponse(request *apiextensionsv1.ConversionRequest, review *apiextensionsv1.ConversionReview, strict bool) ([]*object, error) {
	if kind := review.GroupVersionKind(); strict && kind != apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview") {
		return nil, fmt.Errorf("failed: expected webhook response of %s, got %s",
			apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"), kind)
	}
	answer := review.Response
	if answer == nil {
		return nil, errors.New("failed: no response provided")
	}
	if strict && answer.UID != request.UID {
		return nil, fmt.Errorf("failed: expected response.uid=%q, got %q", request.UID, answer.UID)
	}
	if answer.Result.Status != metav1.StatusSuccess {
		message := answer.Result.Message
		if message == "" {
			message = "response.result.status was '" + answer.Result.Status + "', not 'Success'"
		}
		return nil, errors.New("failed: " + message)
	}
	if len(answer.ConvertedObjects) != len(request.Objects) {
		return nil, fmt.Errorf("returned %d objects, expected %d", len(answer.ConvertedObjects), len(request.Objects))
	}
	out := make([]*object, len(answer.ConvertedObjects))
	for i := range answer.ConvertedObjects {
		o, err := unmarshal(answer.ConvertedObjects[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("returned invalid converted object at index %d: %w", i, err)
		}
		out[i] = o
	}
	return out, nil
}

func (w *webhook) call(ctx context.Context, review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	text, err := w.client.Post(ctx, body)
	if err != nil {
		return nil, err
	}
	if err := bodylimit.Answer(text, body); err != nil {
		return nil, err
	}
	answer := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	return answer, nil
}
