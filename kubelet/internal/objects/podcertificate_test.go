package objects

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/eventually"
	"kctl/proto/rest"
)

// signer is an API server whose signer answers a request when it is read the
// second time.
type signer struct {
	t     *testing.T
	clock impatient

	mu       sync.Mutex
	requests []*certificatesv1.PodCertificateRequest
	looks    int
	answer   string // the condition
}

func (s *signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer any
	switch {
	case r.URL.Path == "/api/v1/nodes/n1":
		answer = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid"}}
	case r.URL.Path == "/api/v1/namespaces/ns/serviceaccounts/robot":
		answer = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", UID: "robot-uid"}}
	case r.Method == http.MethodPost:
		request := &certificatesv1.PodCertificateRequest{}
		if err := json.NewDecoder(r.Body).Decode(request); err != nil {
			s.t.Error(err)
		}
		s.requests = append(s.requests, request)
		s.looks = 0
		request.Name = fmt.Sprintf("req-%d", len(s.requests))
		answer = request
	default:
		request := s.requests[len(s.requests)-1]
		if s.looks++; s.looks > 1 && s.answer != "" {
			request.Status = s.status()
		}
		answer = request
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *signer) status() certificatesv1.PodCertificateRequestStatus {
	after := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: s.clock.Now().Add(d)} }
	return certificatesv1.PodCertificateRequestStatus{
		Conditions:       []metav1.Condition{{Type: s.answer, Status: metav1.ConditionTrue, Reason: "Because", Message: "it is so"}},
		CertificateChain: fmt.Sprintf("chain %d", len(s.requests)), BeginRefreshAt: after(time.Hour), NotAfter: after(2 * time.Hour),
	}
}

func (s *signer) answers(condition string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = condition
}

func (s *signer) asked() []*certificatesv1.PodCertificateRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*certificatesv1.PodCertificateRequest(nil), s.requests...)
}

func newSigner(t *testing.T) (*signer, *Objects) {
	s := &signer{t: t, clock: impatient{testclock.NewFakeClock(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))}, answer: "Issued"}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return s, New(client, s.clock, kubeletv1beta1.WatchChangeDetectionStrategy, zap.NewNop())
}

func TestPodCertificatesAreReplacedInTime(t *testing.T) {
	s, o := newSigner(t)
	p := pod("a")
	p.Spec.NodeName = "n1"
	source := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519", UserAnnotations: map[string]string{"example.com/a": "b"}}
	chain := func(want string) {
		t.Helper()
		key, chain, err := o.PodCertificate(t.Context(), p, source)
		if err != nil || string(chain) != want {
			t.Fatalf("%q, %v", chain, err)
		}
		block, _ := pem.Decode(key)
		if block == nil || block.Type != "PRIVATE KEY" {
			t.Fatalf("%q", key)
		}
		if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	chain("chain 1")
	chain("chain 1")
	spec := s.asked()[0].Spec
	proof, err := x509.ParseCertificateRequest(spec.StubPKCS10Request)
	if err != nil || proof.CheckSignature() != nil {
		t.Errorf("the proof of possession: %v", err)
	}
	if spec.PodUID != "a" || spec.NodeUID != "node-uid" || spec.ServiceAccountUID != "robot-uid" || spec.NodeName != "n1" ||
		spec.UnverifiedUserAnnotations["example.com/a"] != "b" {
		t.Errorf("asked was for %+v", spec)
	}
	// While the next certificate is requested, nobody waits for it.
	s.clock.SetTime(s.clock.Now().Add(61 * time.Minute))
	chain("chain 1")
	chain("chain 2")
	// After a refusal, the signer is not asked for a while; the old certificate is
	// still used.
	s.answers("Denied")
	s.clock.SetTime(s.clock.Now().Add(61 * time.Minute))
	for range 5 {
		chain("chain 2")
	}
	if n := len(s.asked()); n != 3 {
		t.Errorf("it was asked %d times", n)
	}
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.answers("Issued")
	chain("chain 4")
}

func TestPodCertificatesThatAreNotGiven(t *testing.T) {
	s, o := newSigner(t)
	p := pod("a")
	p.Spec.NodeName = "n1"
	source := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ECDSAP256"}
	s.answers("")
	hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := o.PodCertificate(hurried, p, source); err == nil || !strings.Contains(err.Error(), `signer "example.com/s"`) {
		t.Errorf("a signer that is silent: %v", err)
	}
	s.answers("Failed")
	if _, _, err := o.PodCertificate(t.Context(), p, source); err == nil || !strings.Contains(err.Error(), "req-1 was answered with Failed: Because: it is so") {
		t.Errorf("a signer that fails: %v", err)
	}
	if n := len(s.asked()); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	source.KeyType = "DSA"
	if _, _, err := o.PodCertificate(t.Context(), p, source); err == nil || !strings.Contains(err.Error(), `keys of the type "DSA" are not supported`) {
		t.Errorf("a key of another age: %v", err)
	}
	o.Unregister("a")
	if len(o.certificates.entries) != 0 {
		t.Error("the pod is gone, its certificates are not")
	}
}

// Who asks for a certificate that another already waits for need not wait as long.
func TestPodCertificatesThatAnotherWaitsFor(t *testing.T) {
	s, o := newSigner(t)
	p := pod("a")
	p.Spec.NodeName = "n1"
	source := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519"}
	s.answers("")
	patient, cancel := context.WithTimeout(t.Context(), time.Minute) // bounds a failing test
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := o.PodCertificate(patient, p, source)
		ended <- err
	}()
	eventually.Holds(t, "the signer to be asked", func() bool { return len(s.asked()) == 1 })
	hurried, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, _, err := o.PodCertificate(hurried, p, source); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another waits: %v", err)
	}
	if patient.Err() != nil {
		t.Error("it waited as long as the other")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// impatient is a clock whose timers fire at once.
type impatient struct{ *testclock.FakeClock }

func (impatient) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(0) }
