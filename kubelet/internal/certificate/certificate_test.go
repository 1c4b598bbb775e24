package certificate

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
	"kctl/proto/rest"
)

// signer is the part of an API server that handles certificate requests: it
// decides about them while they are watched. The whole-system tests show that a
// real one signs them.
type signer struct {
	*httptest.Server
	t     *testing.T
	ca    *pki.Pair
	caKey any

	mu       sync.Mutex
	requests []*certificatesv1.CertificateSigningRequest
	callers  []string                                                 // common names of the clients that sent them, "" without a certificate
	decide   func(r *certificatesv1.CertificateSigningRequest, n int) // nil signs all
	lasts    time.Duration
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	ca, err := pki.NewCA("ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.TLS()
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{t: t, ca: ca, caKey: pair.PrivateKey, lasts: time.Hour}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost:
		s.create(w, r)
	case r.URL.Query().Get("fieldSelector") == "":
		s.get(w, filepath.Base(r.URL.Path))
	case r.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the list has the decision already
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		list := certificatesv1.CertificateSigningRequestList{
			TypeMeta: metav1.TypeMeta{Kind: "CertificateSigningRequestList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		}
		for _, one := range s.requests {
			if one.Name == name {
				list.Items = append(list.Items, *one)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (s *signer) create(w http.ResponseWriter, r *http.Request) {
	wish := &certificatesv1.CertificateSigningRequest{}
	if err := json.NewDecoder(r.Body).Decode(wish); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	caller := ""
	if len(r.TLS.PeerCertificates) > 0 {
		caller = r.TLS.PeerCertificates[0].SerialNumber.String()
	}
	s.callers = append(s.callers, caller)
	n := len(s.callers)
	if s.exists(w, wish.Name) {
		return
	}
	wish.UID = types.UID(rune('a' + n))
	if wish.Name == "" {
		wish.Name = wish.GenerateName + string(rune('a'+n))
	}
	asked := wish.DeepCopy()
	if s.decide != nil {
		s.decide(wish, n)
	} else {
		wish.Status.Certificate = s.sign(wish.Spec.Request, int64(n))
	}
	s.requests = append(s.requests, wish)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(asked)
}

func (s *signer) sign(request []byte, serial int64) []byte {
	block, _ := pem.Decode(request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	ca, err := s.ca.TLS()
	if err != nil {
		s.t.Error(err)
		return nil
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      csr.Subject,
		NotBefore:    now,
		NotAfter:     now.Add(s.lasts),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.Leaf, csr.PublicKey, s.caKey)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// kubeconfig writes a kubeconfig with a token, as for bootstrap.
func (s *signer) kubeconfig(path string) {
	s.t.Helper()
	ca := filepath.Join(filepath.Dir(path), "ca.crt")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: '" + s.URL + "', certificate-authority: ca.crt}}]\n" +
		"users: [{name: x, user: {token: abcdef.0123456789abcdef}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
	if err := errors.Join(os.WriteFile(ca, data, 0o600), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		s.t.Fatal(err)
	}
}

// client is one with a token.
func (s *signer) client() *rest.Client {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.kubeconfig(path)
	cfg, err := rest.LoadKubeconfig(path)
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := rest.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func options(t *testing.T) Options {
	return Options{
		Purpose: Client,
		Subject: pki.Subject{CommonName: "system:node:n1", Organization: []string{"system:nodes"}},
		Dir:     filepath.Join(t.TempDir(), "pki"),
		Clock:   clocktesting.NewFakeClock(time.Now()),
		Logger:  zap.NewNop(),
	}
}

func TestBootstrap(t *testing.T) {
	s, o := newSigner(t), options(t)
	dir := t.TempDir()
	path, bootstrap := filepath.Join(dir, "kubelet", "kubeconfig"), filepath.Join(dir, "bootstrap")
	s.kubeconfig(bootstrap)
	if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil {
		t.Fatal(err)
	}
	cfg, err := rest.LoadKubeconfig(path)
	if err != nil || cfg.CertFile != o.File() || cfg.Host != s.URL || cfg.BearerToken != "" || cfg.CAFile == "" {
		t.Fatalf("%+v, %v", cfg, err)
	}
	if info, err := os.Stat(o.File()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	pair, err := tls.LoadX509KeyPair(o.File(), o.File())
	if err != nil || pair.Leaf.Subject.String() != "CN=system:node:n1,O=system:nodes" {
		t.Errorf("%v, %v", pair.Leaf.Subject, err)
	}
	wish := s.requests[0].Spec
	if wish.SignerName != "kubernetes.io/kube-apiserver-client-kubelet" || len(wish.Usages) != 2 {
		t.Errorf("%+v", wish)
	}
	// A second start has what it needs, unless that has expired.
	if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil || len(s.requests) != 1 {
		t.Errorf("%v; %d requests", err, len(s.requests))
	}
	o.Clock.(*clocktesting.FakeClock).Step(2 * time.Hour)
	if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil || len(s.requests) != 2 {
		t.Errorf("%v; %d requests", err, len(s.requests))
	}
	if err := Bootstrap(t.Context(), path+"2", filepath.Join(dir, "none"), o); err == nil || !strings.Contains(err.Error(), "--bootstrap-kubeconfig") {
		t.Errorf("without a bootstrap kubeconfig: %v", err)
	}
}

func TestRefusedRequestsAreMadeAgain(t *testing.T) {
	s, o := newSigner(t), options(t)
	clock := o.Clock.(*clocktesting.FakeClock)
	s.decide = func(r *certificatesv1.CertificateSigningRequest, n int) {
		if n == 1 {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue,
				Reason: "No"}}
			return
		}
		r.Status.Certificate = s.sign(r.Spec.Request, int64(n))
	}
	dir := t.TempDir()
	s.kubeconfig(filepath.Join(dir, "bootstrap"))
	done := make(chan error, 1)
	go func() {
		done <- Bootstrap(t.Context(), filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "bootstrap"), o)
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil || len(s.requests) != 2 {
				t.Errorf("%v; %d requests", err, len(s.requests))
			}
			return
		case <-tick.C:
			clock.Step(time.Second)
		}
	}
}

func TestRotation(t *testing.T) {
	s, o := newSigner(t), options(t)
	clock := o.Clock.(*clocktesting.FakeClock)
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	s.kubeconfig(filepath.Join(dir, "bootstrap"))
	if err := Bootstrap(t.Context(), path, filepath.Join(dir, "bootstrap"), o); err != nil {
		t.Fatal(err)
	}
	cfg, err := rest.LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Adopt(cfg, o); err != nil {
		t.Fatal(err)
	}
	client, err := rest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.decide = func(r *certificatesv1.CertificateSigningRequest, n int) {
		if n == 2 {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue}}
			return
		}
		r.Status.Certificate = s.sign(r.Spec.Request, int64(n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	rotator, registry := &Rotator{Options: o, Client: client, Rotated: client.Reconnect}, prometheus.NewRegistry()
	rotator.Register(registry)
	go func() { done <- rotator.Run(ctx) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	seen := func() []string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return append([]string{}, s.callers...)
	}
	for len(seen()) < 4 { // the bootstrap, one that is refused, and two rotations
		select {
		case <-tick.C:
			clock.Step(10 * time.Minute)
		case <-deadline:
			t.Fatalf("callers %q", seen())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if left := value(t, registry, "kubelet_certificate_manager_client_ttl_seconds"); left >= 3600 {
		t.Errorf("a certificate for an hour is valid for %v s", left)
	}
	if failures := value(t, registry, "kubelet_certificate_manager_client_expiration_renew_errors"); failures != 1 {
		t.Errorf("%v failures", failures)
	}
	// Each request uses the certificate from the one before it, on a new
	// connection.
	if got := strings.Join(seen()[:4], " "); got != " 1 1 3" {
		t.Errorf("callers %q", got)
	}
}

// value is the value of a metric.
func value(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestAdoptTakesTheKubeconfigsOwnCertificateFirst(t *testing.T) {
	o := options(t)
	ca, err := pki.NewCA("ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Subject{CommonName: "system:node:n1", Client: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{CertData: pair.Cert, KeyData: pair.Key}
	if err := Adopt(cfg, o); err != nil || cfg.CertFile != o.File() || cfg.CertData != nil {
		t.Fatalf("%v, %+v", err, cfg)
	}
	if kept, err := pki.Load(o.File(), o.File()); err != nil || !bytes.HasPrefix(kept.Cert, pair.Cert) {
		t.Errorf("kept %s (%v), want %s", kept.Cert, err, pair.Cert)
	}
	if err := Adopt(&rest.Config{BearerToken: "t"}, options(t)); err == nil || !strings.Contains(err.Error(), "no client certificate") {
		t.Errorf("without a certificate: %v", err)
	}
}

func TestServing(t *testing.T) {
	s, o := newSigner(t), options(t)
	o.Purpose = Serving
	o.Subject.DNSNames, o.Subject.IPs, o.Subject.Server = []string{"n1"}, []net.IP{net.IPv4(127, 0, 0, 1)}, true
	leaf := func() *x509.Certificate {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(o.File(), o.File())
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	if err := Provide(o); err != nil {
		t.Fatal(err)
	}
	if own := leaf(); own.Issuer.String() != own.Subject.String() || own.VerifyHostname("n1") != nil {
		t.Errorf("before anybody signed: %v by %v", own.Subject, own.Issuer)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rotated, done := make(chan struct{}, 1), make(chan error, 1)
	rotator := Rotator{Options: o, Client: s.client(), Rotated: func() { rotated <- struct{}{} }}
	registry := prometheus.NewRegistry()
	rotator.Register(registry)
	go func() { done <- rotator.Run(ctx) }()
	<-rotated
	if n := value(t, registry, "kubelet_certificate_manager_server_rotation_seconds"); n != 1 {
		t.Errorf("%v certificates replaced", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if signed := leaf(); signed.Issuer.String() != "CN=ca" {
		t.Errorf("signed by %v", signed.Issuer)
	}
	if wish := s.requests[0].Spec; wish.SignerName != "kubernetes.io/kubelet-serving" || wish.Usages[1] != certificatesv1.UsageServerAuth {
		t.Errorf("%+v", wish)
	}
	if err := Provide(o); err != nil || leaf().Issuer.String() != "CN=ca" {
		t.Errorf("started again it serves with %v, %v", leaf().Issuer, err)
	}
}
