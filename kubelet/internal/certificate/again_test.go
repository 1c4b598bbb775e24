package certificate

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/eventually"
	"kctl/proto/rest"
)

// exists answers a request whose name another has; the caller holds mu.
func (s *signer) exists(w http.ResponseWriter, name string) bool {
	for _, one := range s.requests {
		if one.Name == name {
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists,
			})
			return true
		}
	}
	return false
}

// get answers with the request of a name.
func (s *signer) get(w http.ResponseWriter, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.requests {
		if one.Name == name {
			_ = json.NewEncoder(w).Encode(one)
		}
	}
}

// A kubelet that starts again while its request waits for approval waits for the same one; one that is refused
// is made anew, and a key that can't be read replaced.
func TestARestartedBootstrapWaitsForTheSameRequest(t *testing.T) {
	s, o := newSigner(t), options(t)
	s.decide = func(*certificatesv1.CertificateSigningRequest, int) {} // nobody approves
	dir := t.TempDir()
	path, bootstrap := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "bootstrap")
	s.kubeconfig(bootstrap)
	asked := func() (creates, requests int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.callers), len(s.requests)
	}
	for start := 1; start <= 3; start++ {
		ctx, kill := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Bootstrap(ctx, path, bootstrap, o) }()
		eventually.Holds(t, "it asks for a certificate", func() bool { creates, _ := asked(); return creates == start })
		kill()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("killed: %v", err)
		}
	}
	if _, requests := asked(); requests != 1 {
		t.Fatalf("%d requests for three starts", requests)
	}
	s.mu.Lock()
	s.requests[0].Status.Certificate = s.sign(s.requests[0].Spec.Request, 1)
	s.mu.Unlock()
	if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil {
		t.Fatal(err)
	}
	if cfg, err := rest.LoadKubeconfig(path); err != nil || cfg.CertFile != o.File() {
		t.Errorf("%+v, %v", cfg, err)
	}
	kept := filepath.Join(o.Dir, "kubelet-client.key.tmp")
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key is still in a file of its own: %v", err)
	}
	s.decide = nil
	if err := errors.Join(os.Remove(o.File()), os.Remove(path), os.WriteFile(kept, []byte("power cut"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Bootstrap(t.Context(), path, bootstrap, o); err != nil {
		t.Error(err)
	}
}
