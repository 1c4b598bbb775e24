package servertest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/server"
	"kctl/apiserver/internal/server/serving"
	"kctl/proto/core"
	"kctl/proto/eventually"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// Patience is how long a test waits for something to happen: long enough for a
// busy machine, because only a failure takes that long.
const Patience = time.Minute

// Cluster is a running server with its own certificate authority and embedded
// etcd.
type Cluster struct {
	T       *testing.T // the running test or subtest
	Server  *server.Server
	Options *config.Options // those of Server
	CA      *pki.Pair
	CAFile  string
	Address string       // "https://127.0.0.1:PORT"
	Stop    func() error // ends the server and waits for it
}

// tokensFile has a user in system:masters and one without any rights.
const tokensFile = "master,root,1,system:masters\nnobody,jane,2,dev\n"

// Start starts a server in a directory of its own.
func Start(t *testing.T, adjust ...func(*config.Options)) *Cluster {
	t.Helper()
	return StartIn(t, t.TempDir(), adjust...)
}

// StartIn starts a server in dir, which may hold the data of an earlier one.
// adjust changes its options before they are completed.
func StartIn(t *testing.T, dir string, adjust ...func(*config.Options)) *Cluster {
	t.Helper()
	c := &Cluster{T: t, CAFile: filepath.Join(dir, "ca.crt")}
	ca, err := pki.NewCA("test", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c.CA = ca
	tokens := filepath.Join(dir, "tokens.csv")
	certFile, keyFile := filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	serving, err := ca.Issue(pki.Subject{CommonName: "server", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, time.Now(), time.Hour)
	if err == nil {
		err = errors.Join(serving.Save(certFile, keyFile), os.WriteFile(c.CAFile, ca.Cert, 0o600),
			os.WriteFile(tokens, []byte(tokensFile), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	o := config.Defaults()
	o.DataDir, o.SecurePort = filepath.Join(dir, "data"), 0
	o.TLSCertFile, o.TLSKeyFile, o.ClientCAFile = certFile, keyFile, c.CAFile
	o.TokenAuthFile = tokens
	o.AuthorizationModes = []string{config.ModeNode, config.ModeRBAC}
	for _, f := range adjust {
		f(o)
	}
	o.Complete()
	if err := o.Validate(server.Controllers()); err != nil {
		t.Fatal(err)
	}
	c.Run(o)
	return c
}

// In is the cluster for a subtest; errors are reported there.
func (c *Cluster) In(t *testing.T) *Cluster {
	part := *c
	part.T = t
	return &part
}

// Run starts a server and waits until it is ready. It is stopped when the test
// ends.
func (c *Cluster) Run(o *config.Options) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := server.New(ctx, o, clock.RealClock{}, zap.NewNop())
	if err != nil {
		cancel()
		c.T.Fatal(err)
	}
	c.Server, c.Options = s, o
	done := make(chan struct{})
	var result error
	go func() {
		defer close(done)
		result = errors.Join(s.Run(ctx), s.Close())
	}()
	c.Stop = func() error {
		cancel()
		<-done
		return result
	}
	c.T.Cleanup(func() {
		if err := c.Stop(); err != nil {
			c.T.Errorf("server ended with %v", err)
		}
	})
	select {
	case <-s.Ready():
	case <-done:
		c.T.Fatalf("server ended: %v", result)
	case <-time.After(Patience):
		c.T.Fatal("server is not ready")
	}
	port, err := os.ReadFile(filepath.Join(o.DataDir, serving.PortFile))
	if err != nil {
		c.T.Fatal(err)
	}
	c.Address = "https://127.0.0.1:" + strings.TrimSpace(string(port))
}

// Port is the port that the server listens on.
func (c *Cluster) Port() int {
	c.T.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(c.Address, "https://"))
	c.Must(err)
	number, err := strconv.Atoi(port)
	c.Must(err)
	return number
}

// Token returns a client that sends a bearer token, or no credentials if token
// is "".
func (c *Cluster) Token(token string) *rest.Client {
	c.T.Helper()
	return c.Client(&rest.Config{BearerToken: token})
}

// Certificate returns a client with a certificate signed by authority.
func (c *Cluster) Certificate(authority *pki.Pair, subject pki.Subject) *rest.Client {
	c.T.Helper()
	pair, err := authority.Issue(subject, time.Now(), time.Hour)
	if err != nil {
		c.T.Fatal(err)
	}
	return c.Client(&rest.Config{CertData: pair.Cert, KeyData: pair.Key})
}

// Client returns a client made from cfg, after setting the server's address and
// CA in it.
func (c *Cluster) Client(cfg *rest.Config) *rest.Client {
	c.T.Helper()
	cfg.Host, cfg.CAFile = c.Address, c.CAFile
	client, err := rest.New(cfg)
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(client.HTTP().CloseIdleConnections)
	return client
}

// Root returns a client for a user in system:masters.
func (c *Cluster) Root() *rest.Client { return c.Token("master") }

// Until calls holds until it returns true. It waits for what the server
// promises to do soon, such as honouring a new role binding.
func (c *Cluster) Until(what string, holds func(ctx context.Context) bool) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), Patience)
	defer cancel()
	eventually.Holds(c.T, what, func() bool { return holds(ctx) })
}

// Must ends the test if err is not nil.
func (c *Cluster) Must(err error) {
	c.T.Helper()
	if err != nil {
		c.T.Fatal(err)
	}
}

func (c *Cluster) Namespace(name string) {
	c.T.Helper()
	c.Must(c.Root().Resource(core.Namespaces, "").Create(c.T.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil))
}

// Pod returns a pod with just enough to be accepted.
func Pod(name string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: core.PodSpec{Containers: []core.Container{{
		Name: "c", Image: "registry.test/demo:1",
	}}}}
}

// Created creates a pod and returns what the server made of it.
func (c *Cluster) Created(namespace string, p *core.Pod, opts ...rest.Option) *core.Pod {
	c.T.Helper()
	into := &core.Pod{}
	c.Must(c.Root().Resource(core.Pods, namespace).Create(c.T.Context(), p, into, opts...))
	return into
}

// AwaitServiceAccount waits for a namespace's default service account: without
// it, admission refuses pods.
func (c *Cluster) AwaitServiceAccount(namespace string) {
	c.T.Helper()
	c.Until("default service account of "+namespace, func(ctx context.Context) bool {
		return c.Root().Resource(core.ServiceAccounts, namespace).Get(ctx, "default", &core.ServiceAccount{}) == nil
	})
}

// TokenSecret creates a secret for a token of the service account, and returns it when it
// holds one.
func (c *Cluster) TokenSecret(namespace, name, account string) *core.Secret {
	c.T.Helper()
	secrets, filled := c.Root().Resource(core.Secrets, namespace), &core.Secret{}
	c.Must(secrets.Create(c.T.Context(), &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, nil))
	c.Until("the secret holds a token", func(ctx context.Context) bool {
		*filled = core.Secret{}
		return secrets.Get(ctx, name, filled) == nil && len(filled.Data["token"]) > 0
	})
	return filled
}

// Bind binds a cluster role to a subject.
func (c *Cluster) Bind(name, role string, subject rbacv1.Subject) {
	c.T.Helper()
	subject.APIGroup = rbacv1.GroupName
	c.Must(c.Root().Resource(core.ClusterRoleBindings, "").Create(c.T.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, nil))
}
