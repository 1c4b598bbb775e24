package encrypt

import (
	"cmp"
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	kmsv2 "k8s.io/kms/apis/v2"
)

// service is a key management service whose keys are bytes to XOR with.
type service struct {
	kmsv2.UnimplementedKeyManagementServiceServer
	endpoint string

	mu                   sync.Mutex
	keyID                string
	sealsBy, note        string // if not the key of Status and an annotation with a domain
	away                 bool
	asks                 func() // called by Status; may be nil
	encrypted, decrypted int
}

func startKMS(t *testing.T) *service {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "kms.sock")
	return startKMSAt(t, socket, "unix://"+socket)
}

func startKMSAt(t *testing.T, socket, endpoint string) *service {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{endpoint: endpoint, keyID: "1"}
	server := grpc.NewServer()
	kmsv2.RegisterKeyManagementServiceServer(server, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return s
}

func (s *service) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *service) Status(context.Context, *kmsv2.StatusRequest) (*kmsv2.StatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks != nil {
		s.asks()
	}
	if s.away {
		return nil, errors.New("away")
	}
	return &kmsv2.StatusResponse{Version: "v2", Healthz: "ok", KeyId: s.keyID}, nil
}

func flip(b []byte, key string) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = b[i] ^ key[0]
	}
	return out
}

func (s *service) Encrypt(_ context.Context, r *kmsv2.EncryptRequest) (*kmsv2.EncryptResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.encrypted++
	key := cmp.Or(s.sealsBy, s.keyID)
	return &kmsv2.EncryptResponse{Ciphertext: flip(r.Plaintext, key), KeyId: key, Annotations: map[string][]byte{cmp.Or(s.note, "note.example.com"): []byte("n")}},
		nil
}

func (s *service) Decrypt(_ context.Context, r *kmsv2.DecryptRequest) (*kmsv2.DecryptResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errors.New("away")
	}
	if string(r.Annotations["note.example.com"]) != "n" {
		return nil, errors.New("the annotations were lost")
	}
	s.decrypted++
	return &kmsv2.DecryptResponse{Plaintext: flip(r.Ciphertext, r.KeyId)}, nil
}
