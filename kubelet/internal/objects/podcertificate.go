package objects

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// podRequests are how a pod's certificates are asked for (KEP-4317).
var podRequests = core.Resource{
	Group: certificatesv1.GroupName, Version: "v1", Name: "podcertificaterequests", Kind: "PodCertificateRequest", Namespaced: true,
}

const (
	// firstLook and longestLook are the waits between two looks at a request.
	firstLook, longestLook = 50 * time.Millisecond, time.Second
	// refusalLasts is how long a signer's refusal stands before it is asked again.
	refusalLasts = 10 * time.Minute
)

// podCertificates keeps the certificates of pods until they should be replaced.
// They are only in memory: a restarted kubelet asks for new ones.
type podCertificates struct {
	client *rest.Client // nil for no API server
	clock  clock.Clock
	// The key contains everything that a volume of the pod says about the certificate.
	podEntries[string, podCertificate]
}

// podCertificate is one certificate, and the request for the next one.
type podCertificate struct {
	key, chain       []byte
	replace, expires time.Time

	pending    string // the name of the request under way
	pendingKey []byte
	refused    error
	again      time.Time
}

// PodCertificate returns the private key and the certificates that a pod's
// volume asks for, as PEM: the same ones until the signer says that it is time
// for new ones. For the first, it waits for the signer until ctx ends.
func (o *Objects) PodCertificate(ctx context.Context, pod *core.Pod,
	source *corev1.PodCertificateProjection) (key, chain []byte, err error) {
	return o.certificates.get(ctx, pod, source)
}

func (p *podCertificates) get(ctx context.Context, pod *core.Pod, source *corev1.PodCertificateProjection) (key, chain []byte, err error) {
	if p.client == nil {
		return nil, nil, errNoServer
	}
	said, err := json.Marshal(source)
	if err != nil {
		return nil, nil, err
	}
	e, give, err := p.take(ctx, pod.UID, string(said))
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of signer %q: waiting for the answer to another: %w", source.SignerName, err)
	}
	defer give()
	now := p.clock.Now()
	if e.chain != nil && now.Before(e.replace) {
		return e.key, e.chain, nil
	}
	good := e.chain != nil && now.Before(e.expires)
	if err := p.advance(ctx, e, pod, source, !good); err != nil && !good {
		return nil, nil, fmt.Errorf("certificate of signer %q: %w", source.SignerName, err)
	}
	return e.key, e.chain, nil
}

// advance makes a request unless one is under way, and checks its outcome:
// once, or until it is decided.
func (p *podCertificates) advance(ctx context.Context, e *podCertificate, pod *core.Pod, source *corev1.PodCertificateProjection,
	wait bool) error {
	if e.refused != nil && p.clock.Now().Before(e.again) {
		return e.refused
	}
	if e.pending == "" {
		if err := p.request(ctx, e, pod, source); err != nil {
			return err
		}
	}
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		decided, err := p.look(ctx, e, pod.Namespace)
		if decided || err != nil || !wait {
			return err
		}
		if err := backoff.Sleep(ctx, p.clock, pause); err != nil {
			return fmt.Errorf("waiting for the signer to answer %s: %w", e.pending, err)
		}
	}
}

// request asks for a certificate of a new key.
func (p *podCertificates) request(ctx context.Context, e *podCertificate, pod *core.Pod, source *corev1.PodCertificateProjection) error {
	signer, err := newKey(source.KeyType)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return err
	}
	proof, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, signer)
	if err != nil {
		return err
	}
	// The requester and the pod are identified by UID, too.
	var node corev1.Node
	if err := p.client.Resource(core.Nodes, "").Get(ctx, pod.Spec.NodeName, &node); err != nil {
		return err
	}
	var account corev1.ServiceAccount
	if err := p.client.Resource(core.ServiceAccounts, pod.Namespace).Get(ctx, pod.Spec.ServiceAccountName, &account); err != nil {
		return err
	}
	request := &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    "req-",
			Namespace:       pod.Namespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: certificatesv1.PodCertificateRequestSpec{
			PodName: pod.Name, PodUID: pod.UID,
			ServiceAccountName: account.Name, ServiceAccountUID: account.UID,
			NodeName: types.NodeName(node.Name), NodeUID: node.UID,
			SignerName: source.SignerName, MaxExpirationSeconds: source.MaxExpirationSeconds,
			StubPKCS10Request: proof, UnverifiedUserAnnotations: source.UserAnnotations,
		},
	}
	if err := p.client.Resource(podRequests, pod.Namespace).Create(ctx, request, request); err != nil {
		return err
	}
	e.pending, e.pendingKey = request.Name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	return nil
}

// look tells whether the request is decided, and takes the certificate if it
// was issued.
func (p *podCertificates) look(ctx context.Context, e *podCertificate, namespace string) (decided bool, err error) {
	var request certificatesv1.PodCertificateRequest
	err = p.client.Resource(podRequests, namespace).Get(ctx, e.pending, &request)
	if apierrors.IsNotFound(err) {
		e.pending, e.pendingKey = "", nil // nobody answered, and the request was deleted
	}
	if err != nil {
		return false, err
	}
	for _, c := range request.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			continue
		}
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			if request.Status.BeginRefreshAt == nil || request.Status.NotAfter == nil {
				return false, fmt.Errorf("request %s was answered without the certificate's times", request.Name)
			}
			e.key, e.chain = e.pendingKey, []byte(request.Status.CertificateChain)
			e.replace, e.expires = request.Status.BeginRefreshAt.Time, request.Status.NotAfter.Time
			e.pending, e.pendingKey, e.refused = "", nil, nil
			return true, nil
		case certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionTypeFailed:
			e.pending, e.pendingKey = "", nil
			e.refused = fmt.Errorf("request %s was answered with %s: %s: %s", request.Name, c.Type, c.Reason, c.Message)
			e.again = p.clock.Now().Add(refusalLasts)
			return true, e.refused
		}
	}
	return false, nil
}

// newKey makes a key of one of the API's types.
func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "RSA3072":
		return rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		return rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("keys of the type %q are not supported", kind)
}
