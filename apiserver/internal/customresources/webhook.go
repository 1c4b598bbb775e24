package customresources

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ServiceResolver finds where a service answers: "host:port" of its address.
type ServiceResolver func(ctx context.Context, namespace, name string, port int32) (string, error)

// maxAnswer bounds what a webhook may answer with.
const maxAnswer = 64 << 20

// webhook asks a server of the user's to convert objects.
type webhook struct {
	config   *apiextensionsv1.WebhookClientConfig
	versions []string
	services ServiceResolver

	once   sync.Once
	client *http.Client
	err    error
}

func newWebhook(d *definition, services ServiceResolver) *webhook {
	return &webhook{
		config: d.Spec.Conversion.Webhook.ClientConfig, versions: d.Spec.Conversion.Webhook.ConversionReviewVersions, services: services,
	}
}

// convert asks for all objects at once. The answer has them in the same order.
func (w *webhook) convert(ctx context.Context, to string, objects []*object) ([]*object, error) {
	if !slices.Contains(w.versions, "v1") {
		return nil, fmt.Errorf("it speaks ConversionReview %s, and v1 is spoken here", strings.Join(w.versions, ", "))
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
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: "apiextensions.k8s.io/v1"}, Request: request,
	}
	answer, err := w.ask(ctx, review)
	if err != nil {
		return nil, err
	}
	return read(request, answer)
}

// read takes the converted objects out of an answer.
func read(request *apiextensionsv1.ConversionRequest, review *apiextensionsv1.ConversionReview) ([]*object, error) {
	answer := review.Response
	if answer == nil {
		return nil, errors.New("no response provided")
	}
	if answer.UID != request.UID {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", request.UID, answer.UID)
	}
	if answer.Result.Status != metav1.StatusSuccess {
		message := answer.Result.Message
		if message == "" {
			message = "response.result.status was '" + answer.Result.Status + "', not 'Success'"
		}
		return nil, errors.New(message)
	}
	if len(answer.ConvertedObjects) != len(request.Objects) {
		return nil, fmt.Errorf("returned %d objects, expected %d", len(answer.ConvertedObjects), len(request.Objects))
	}
	out := make([]*object, len(answer.ConvertedObjects))
	for i := range answer.ConvertedObjects {
		o, err := unmarshal(answer.ConvertedObjects[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("invalid converted object at index %d: %w", i, err)
		}
		out[i] = o
	}
	return out, nil
}

func (w *webhook) ask(ctx context.Context, review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	w.once.Do(func() { w.client, w.err = w.connect() })
	if w.err != nil {
		return nil, w.err
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	answer := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	return answer, nil
}

func (w *webhook) url() string {
	if w.config.URL != nil {
		return *w.config.URL
	}
	s := w.config.Service
	u := url.URL{Scheme: "https", Host: net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(*s.Port))), Path: "/"}
	if s.Path != nil {
		u.Path = *s.Path
	}
	return u.String()
}

// connect makes the client. A service is reached by its address, and is to
// show a certificate of its name.
func (w *webhook) connect() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(w.config.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(w.config.CABundle) {
			return nil, errors.New("caBundle holds no certificate")
		}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: conversionTime}
	if s := w.config.Service; s != nil {
		if w.services == nil {
			return nil, errors.New("services are not reached from here")
		}
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			address, err := w.services(ctx, s.Namespace, s.Name, *s.Port)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
