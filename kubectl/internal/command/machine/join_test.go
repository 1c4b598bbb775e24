package machine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubectl/internal/bootstrap"
	"kctl/kubectl/internal/command/frame"
	"kctl/proto/core"
	"kctl/proto/pki"
)

// told is a standard error on which each write is an event.
type told chan string

func (t told) Write(p []byte) (int, error) { t <- string(p); return len(p), nil }

// joining is a machine on which join waits for the kubelet, and the server that it joins.
type joining struct {
	bootstrap.Node
	t          *testing.T
	registered atomic.Bool
	renewed    atomic.Int64 // when the node's lease was
	server     *httptest.Server
	told       told
	ended      chan error
}

func newJoining(t *testing.T, ctx context.Context, clock clock.WithTicker) *joining {
	j := &joining{Node: bootstrap.Node{Dir: t.TempDir()}, t: t, told: make(told), ended: make(chan error, 1)}
	j.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n":
			renewed := metav1.NewMicroTime(time.Unix(j.renewed.Load(), 0))
			_ = json.NewEncoder(w).Encode(core.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
		case r.URL.Path != "/api/v1/nodes/n":
			t.Errorf("asked for %s", r.URL)
		case j.registered.Load():
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}`))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "nodes \"n\" not found"}`))
		}
	}))
	t.Cleanup(j.server.Close)
	go func() {
		j.ended <- untilJoined(ctx, frame.New(frame.Streams{In: strings.NewReader(""), Out: j.told, Err: j.told}, clock), j.Node, "n", clock.Now())
	}()
	return j
}

// says waits until the user is told something.
func (j *joining) says(want string) {
	j.t.Helper()
	select {
	case got := <-j.told:
		if !strings.Contains(got, want) {
			j.t.Fatalf("told %q, want %q", got, want)
		}
	case err := <-j.ended:
		j.t.Fatalf("ended with %v, want %q", err, want)
	}
}

// admit does what the kubelet does when it gets its certificate, which lasts so long.
func (j *joining) admit(lasts time.Duration) { admit(j.t, j.Node, j.server.URL, lasts) }

func admit(t *testing.T, n bootstrap.Node, server string, lasts time.Duration) {
	t.Helper()
	pair, err := pki.SelfSigned(pki.Subject{CommonName: "system:node:n"}, time.Now().Add(-time.Hour), time.Hour+lasts)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + server +
		"'}}]\nusers: [{name: u, user: {client-certificate-data: " + encode(pair.Cert) + ", client-key-data: " + encode(pair.Key) +
		"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	if err := os.WriteFile(n.Kubeconfig(), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Who joins a machine can ask for its node at once.
func TestJoinWaitsForTheNode(t *testing.T) {
	j := newJoining(t, t.Context(), clock.RealClock{})
	j.says("got its certificate, for 2m0s at most")
	j.admit(time.Hour)
	j.says("registered node n, for 2m0s at most")
	j.registered.Store(true)
	j.renewed.Store(time.Now().Add(time.Minute).Unix())
	if err := <-j.ended; err != nil {
		t.Error(err)
	}
}

func TestJoinEndsWithoutACertificate(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	j := newJoining(t, t.Context(), clock)
	j.says("got its certificate")
	clock.Step(stepWithin)
	if err := <-j.ended; err == nil || !strings.Contains(err.Error(), "has not got its certificate within 2m0s") ||
		!strings.Contains(err.Error(), "kctl get csr") {
		t.Error(err)
	}
}

func TestJoinEndsWithoutANode(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	j := newJoining(t, t.Context(), clock)
	j.says("got its certificate")
	j.admit(time.Hour)
	clock.Step(200 * time.Millisecond)
	j.says("registered node n")
	clock.Step(stepWithin)
	if err := <-j.ended; err == nil || !strings.Contains(err.Error(), `has not registered node n within 2m0s: nodes "n" not found; see `) {
		t.Error(err)
	}
}

// What an earlier join left is no kubelet that runs: neither a certificate that is too old
// nor a node whose lease nobody renews any more.
func TestJoinIsNotMetByWhatIsLeft(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	j := newJoining(t, t.Context(), clock)
	j.registered.Store(true)
	j.renewed.Store(clock.Now().Add(-time.Hour).Unix())
	j.says("got its certificate")
	j.admit(-time.Minute)
	clock.Step(200 * time.Millisecond)
	j.admit(time.Hour)
	clock.Step(200 * time.Millisecond)
	j.says("registered node n")
	clock.Step(stepWithin)
	if err := <-j.ended; err == nil || !strings.Contains(err.Error(), "node n already existed, and no kubelet has renewed its lease since") {
		t.Error(err)
	}
}

func TestJoinIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	j := newJoining(t, ctx, clocktesting.NewFakeClock(time.Now()))
	j.says("got its certificate")
	interrupt()
	if err := <-j.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A kubelet that is told not to register its node leaves that to somebody else.
func TestJoinOfAKubeletThatDoesNotRegister(t *testing.T) {
	n := bootstrap.Node{Dir: t.TempDir()}
	if err := os.WriteFile(n.Dir+"/kubelet.yaml", []byte("registerNode: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	admit(t, n, "http://127.0.0.1:1", time.Hour)
	var out bytes.Buffer
	err := untilJoined(t.Context(), frame.New(frame.Streams{Out: &out, Err: &out}, clock.RealClock{}), n, "n", time.Now())
	if err != nil || !strings.Contains(out.String(), "registerNode: false") {
		t.Errorf("%v\n%s", err, &out)
	}
}
