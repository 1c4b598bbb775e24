package server

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// patience is how long a test waits for something that is to happen: long
// enough for a machine that is busy, because only a failure takes that long.
const patience = time.Minute

// cluster is one running server with its own authority and embedded etcd.
type cluster struct {
	t       *testing.T
	server  *Server
	ca      *pki.Pair
	caFile  string
	address string
	stop    func() error // ends the server and waits for it
}

// tokensFile has somebody in system:masters and somebody without any right.
const tokensFile = "master,root,1,system:masters\nnobody,jane,2,dev\n"

// start starts a server in a directory of its own.
func start(t *testing.T, adjust ...func(*config.Options)) *cluster {
	t.Helper()
	return startIn(t, t.TempDir(), adjust...)
}

func startIn(t *testing.T, dir string, adjust ...func(*config.Options)) *cluster {
	t.Helper()
	c := &cluster{t: t, caFile: filepath.Join(dir, "ca.crt")}
	ca, err := pki.NewCA("test", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c.ca = ca
	tokens := filepath.Join(dir, "tokens.csv")
	certFile, keyFile := filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	serving, err := ca.Issue(pki.Subject{CommonName: "server", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, time.Now(), time.Hour)
	if err == nil {
		err = errors.Join(serving.Save(certFile, keyFile), os.WriteFile(c.caFile, ca.Cert, 0o600), os.WriteFile(tokens, []byte(tokensFile), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	o := config.Defaults()
	o.DataDir, o.SecurePort = filepath.Join(dir, "data"), 0
	o.TLSCertFile, o.TLSKeyFile, o.ClientCAFile = certFile, keyFile, c.caFile
	o.TokenAuthFile = tokens
	o.AuthorizationModes = []string{config.ModeNode, config.ModeRBAC}
	for _, f := range adjust {
		f(o)
	}
	o.Complete()
	if err := o.Validate(Controllers()); err != nil {
		t.Fatal(err)
	}
	c.run(o)
	return c
}

func (c *cluster) run(o *config.Options) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server, err := New(ctx, o, clock.RealClock{}, zap.NewNop())
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	c.server = server
	done := make(chan struct{})
	var result error
	go func() {
		defer close(done)
		result = errors.Join(server.Run(ctx), server.backend.close())
	}()
	c.stop = func() error {
		cancel()
		<-done
		return result
	}
	c.t.Cleanup(func() {
		if err := c.stop(); err != nil {
			c.t.Errorf("server ended with %v", err)
		}
	})
	select {
	case <-server.ready:
	case <-done:
		c.t.Fatalf("server ended: %v", result)
	case <-time.After(patience):
		c.t.Fatal("server is not ready")
	}
	port, err := os.ReadFile(filepath.Join(o.DataDir, portFile))
	if err != nil {
		c.t.Fatal(err)
	}
	c.address = "https://127.0.0.1:" + strings.TrimSpace(string(port))
}

// token returns a client that shows a token, or nothing.
func (c *cluster) token(token string) *rest.Client {
	c.t.Helper()
	return c.client(&rest.Config{BearerToken: token})
}

// certificate returns a client that shows a certificate of authority's.
func (c *cluster) certificate(authority *pki.Pair, subject pki.Subject) *rest.Client {
	c.t.Helper()
	pair, err := authority.Issue(subject, time.Now(), time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.client(&rest.Config{CertData: pair.Cert, KeyData: pair.Key})
}

func (c *cluster) client(cfg *rest.Config) *rest.Client {
	c.t.Helper()
	cfg.Host, cfg.CAFile = c.address, c.caFile
	client, err := rest.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.HTTP().CloseIdleConnections)
	return client
}

func (c *cluster) root() *rest.Client { return c.token("master") }

// until asks again until it is answered with true. It waits for what the
// server promises to happen soon, such as a new role binding to count.
func (c *cluster) until(what string, holds func(ctx context.Context) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			c.t.Fatalf("waited in vain: %s", what)
		case <-ticker.C:
		}
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) namespace(name string) {
	c.t.Helper()
	c.must(c.root().Resource(core.Namespaces, "").Create(c.t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil))
}

func pod(name string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Image: "registry.test/demo:1"}}}}
}

// created makes a pod in a namespace once its service account is there.
func (c *cluster) created(namespace string, p *core.Pod, opts ...rest.Option) *core.Pod {
	c.t.Helper()
	into := &core.Pod{}
	c.must(c.root().Resource(core.Pods, namespace).Create(c.t.Context(), p, into, opts...))
	return into
}
