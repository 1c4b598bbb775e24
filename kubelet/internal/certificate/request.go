package certificate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// request asks for a certificate and waits for it until ctx ends. A request
// that is refused is an error.
func (o Options) request(ctx context.Context, client *rest.Client) (*pki.Pair, error) {
	csr, key, err := o.newRequest()
	if err != nil {
		return nil, err
	}
	wish := &certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    csr,
			SignerName: o.Purpose.signer,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, o.Purpose.usage},
		},
	}
	requests := client.Resource(core.CertificateSigningRequests, "")
	if err := o.ask(ctx, requests, wish); err != nil {
		return nil, fmt.Errorf("ask for a certificate: %w", err)
	}
	o.Logger.Info("asked for a certificate", zap.String("request", wish.Name), zap.String("signer", o.Purpose.signer))
	pair, err := o.answer(ctx, requests, wish, key)
	if err != nil {
		if ctx.Err() == nil { // it is decided or gone: the next request is another one
			o.forgetKey()
		}
		return nil, fmt.Errorf("certificate signing request %s: %w", wish.Name, err)
	}
	return pair, nil
}

// ask makes the request. With a key that is kept it has the name of its contents, and the one that an earlier
// run made with that key is taken instead: somebody may be about to approve it.
func (o Options) ask(ctx context.Context, requests rest.Resource, wish *certificatesv1.CertificateSigningRequest) error {
	if o.keyFile == "" {
		return requests.Create(ctx, wish, wish)
	}
	contents, err := pki.RequestContents(wish.Spec.Request)
	if err != nil {
		return err
	}
	wish.Name, wish.GenerateName = fmt.Sprintf("%s%x", wish.GenerateName, sha256.Sum256(append([]byte(wish.Spec.SignerName), contents...))), ""
	if err := requests.Create(ctx, wish, wish); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return requests.Get(ctx, wish.Name, wish)
}

// answer waits for the certificate of a request.
func (o Options) answer(ctx context.Context, requests rest.Resource, wish *certificatesv1.CertificateSigningRequest,
	key []byte) (*pki.Pair, error) {
	cert, err := await(ctx, requests, wish, o.Clock, o.Logger)
	if err != nil {
		return nil, err
	}
	pair := &pki.Pair{Cert: cert, Key: key}
	if _, err := pair.TLS(); err != nil {
		return nil, fmt.Errorf("the signed certificate is unusable: %w", err)
	}
	return pair, nil
}

// decision is the outcome of a request.
type decision struct {
	cert []byte
	err  error
}

// await watches one request until it is decided.
func await(ctx context.Context, requests rest.Resource, wish *certificatesv1.CertificateSigningRequest, clock clock.Clock,
	logger *zap.Logger) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := waiter{request: wish, decided: make(chan decision, 1)}
	reflector := watch.NewReflector(requests,
		func() *certificatesv1.CertificateSigningRequest { return &certificatesv1.CertificateSigningRequest{} }, w,
		watch.Options{FieldSelector: "metadata.name=" + wish.Name, Clock: clock, Logger: logger})
	var running sync.WaitGroup
	running.Go(func() { _ = reflector.Run(ctx) }) // ends with ctx only
	defer running.Wait()
	defer cancel()
	select {
	case d := <-w.decided:
		return d.cert, d.err
	case <-ctx.Done():
		return nil, fmt.Errorf("it has been neither approved nor denied: %w", ctx.Err())
	}
}

// waiter receives the changes of one request until it is decided.
type waiter struct {
	request *certificatesv1.CertificateSigningRequest
	decided chan decision // has room for one
}

func (w waiter) Replace(found []*certificatesv1.CertificateSigningRequest) {
	if len(found) == 0 {
		w.handle(nil)
	}
	for _, r := range found {
		w.handle(r)
	}
}

func (w waiter) Apply(t watch.Type, r *certificatesv1.CertificateSigningRequest) {
	if t == watch.Deleted {
		r = nil
	}
	w.handle(r)
}

func (w waiter) handle(r *certificatesv1.CertificateSigningRequest) {
	if d, ok := decide(r, w.request); ok {
		select {
		case w.decided <- d:
		default: // it was decided before
		}
	}
}

// decide says whether the request, nil if it is gone, is decided, and how.
func decide(r, wish *certificatesv1.CertificateSigningRequest) (decision, bool) {
	if r == nil || r.UID != wish.UID {
		return decision{err: errors.New("it was deleted")}, true
	}
	for _, c := range r.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed) {
			return decision{err: fmt.Errorf("%s: %s: %s", c.Type, c.Reason, c.Message)}, true
		}
	}
	return decision{cert: r.Status.Certificate}, len(r.Status.Certificate) > 0
}
