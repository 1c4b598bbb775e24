package serving

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/certificate"
	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/identity"
	"kctl/kubelet/internal/server"
	"kctl/kubelet/internal/server/auth"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// nodeLogs is where the machine keeps its logs.
const nodeLogs = "/var/log"

// Servers are all of one kubelet.
type Servers struct {
	config   *config.Config
	identity *identity.Identity
	client   *rest.Client // nil without an API server
	clock    clock.Clock
	logger   *zap.Logger

	port atomic.Int32
}

// New returns Servers that listen once they run.
func New(c *config.Config, identity *identity.Identity, client *rest.Client, clock clock.Clock, logger *zap.Logger) *Servers {
	return &Servers{config: c, identity: identity, client: client, clock: clock, logger: logger}
}

// Port is the one that the server listens on; zero before.
func (s *Servers) Port() int32 { return s.port.Load() }

// Run answers on the kubelet's ports until ctx ends with what about has of the node; listening is called once it is known
// which --port is, or that there is none.
func (s *Servers) Run(ctx context.Context, about server.Config, listening func()) error {
	if !s.config.Serving.EnableServer && s.config.Serving.ReadOnlyPort == 0 {
		listening()
		return nil
	}
	clients, err := daemon.ClientAuthorities("client certificate authority", s.config.Serving.ClientCAFile, s.clock, s.logger)
	if err != nil {
		return err
	}
	answers, err := s.newServer(about, clients)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if s.config.Serving.ReadOnlyPort != 0 {
		group.Go(func() error { return s.serveReadOnly(ctx, answers) })
	}
	if s.config.Serving.EnableServer {
		group.Go(func() error { return s.serveTLS(ctx, answers, clients, listening) })
	} else {
		listening()
	}
	return group.Wait()
}

// newServer returns the server of both ports. What it shows of the node is in about; who may see what
// is the configuration's.
func (s *Servers) newServer(about server.Config, clients *pki.Authorities) (*server.Server, error) {
	c, serving := s.config, &s.config.Serving
	about.NodeName, about.Authenticator, about.Authorizer = s.identity.NodeName, s.authenticator(clients), s.authorizer()
	about.Clock, about.Logger = s.clock, s.logger
	about.Debugging, about.Profiling = serving.EnableDebuggingHandlers, serving.EnableProfilingHandler
	about.Configz, about.Checkpoints = func() any { return c.Effective() }, filepath.Join(c.RootDir, "checkpoints")
	about.Pages.Started, about.Pages.Flags = s.clock.Now(), c.Flags
	if serving.EnableSystemLogHandler {
		about.NodeLogs, about.NodeLogQueries = nodeLogs, serving.EnableSystemLogQuery
	}
	if c.Cgroups.CPUCFSQuota {
		about.Stats.CPUPeriod = cmp.Or(c.Cgroups.CPUCFSQuotaPeriod.Microseconds(), cgroup.Period)
	}
	if serving.EnableDebugFlagsHandler {
		about.Log = &c.Log
	}
	if serving.EnableDebuggingHandlers && serving.EnableProfilingHandler && serving.EnableContentionProfiling {
		runtime.SetBlockProfileRate(1)
	}
	return server.New(about)
}

func (s *Servers) serveReadOnly(ctx context.Context, answers *server.Server) error {
	s.logger.Warn("the read-only port exposes this node's pods to anyone who can reach it", zap.Int32("port", s.config.Serving.ReadOnlyPort))
	listener := daemon.Listener{Address: s.address(s.config.Serving.ReadOnlyPort), Handler: answers.ReadOnly(), Logger: s.logger}
	return listener.Serve(ctx)
}

func (s *Servers) serveTLS(ctx context.Context, answers *server.Server, clients *pki.Authorities, listening func()) error {
	serving := &s.config.Serving
	if serving.AnonymousAuth && serving.AuthorizationMode == "AlwaysAllow" {
		s.logger.Warn("anyone who can reach the kubelet's port has full access: anonymous requests are allowed, and authorization is off")
	}
	certFile, keyFile := serving.TLSCertFile, serving.TLSKeyFile
	if s.config.ServerTLSBootstrap {
		o := s.identity.ServingCertificates()
		if err := certificate.Provide(o); err != nil {
			return err
		}
		certFile, keyFile = o.File(), o.File()
	}
	return answers.Run(ctx, server.ListenOptions{
		TLS:     serving.TLS,
		Address: s.address(serving.Port), CertFile: certFile, KeyFile: keyFile,
		CertDir: s.config.CertDir, Clients: clients, DNSNames: []string{s.identity.NodeName}, IPs: s.identity.ServingIPs(),
		OnListen: func(address net.Addr) {
			if tcp, ok := address.(*net.TCPAddr); ok {
				s.port.Store(int32(tcp.Port))
			}
			listening()
		},
	})
}

// authenticator recognises clients by certificate, and by token if there is an
// API server to vouch for it.
func (s *Servers) authenticator(clients *pki.Authorities) *auth.Authenticator {
	return auth.NewAuthenticator(auth.Authentication{
		Certificates: clients,
		Tokens:       s.config.Serving.AuthenticationTokenWebhook && s.client != nil,
		Anonymous:    s.config.Serving.AnonymousAuth,
		CacheTTL:     s.config.Serving.CacheTTLs.Token,
	}, s.client, s.clock)
}

// authorizer lets the API server decide. Without one, every authenticated
// client, with a certificate of our own CA, may do everything.
func (s *Servers) authorizer() *auth.Authorizer {
	if s.config.Serving.AuthorizationMode == "AlwaysAllow" || s.client == nil {
		return auth.AlwaysAllow()
	}
	return auth.NewAuthorizer(s.identity.NodeName, s.client, s.config.Serving.CacheTTLs, s.clock)
}

// RunHealth answers on the health port until ctx ends.
func (s *Servers) RunHealth(ctx context.Context, checks *daemon.Health, registry *prometheus.Registry) error {
	if s.config.Serving.HealthzPort == 0 {
		return nil
	}
	address := net.JoinHostPort(s.config.Serving.HealthzAddress, fmt.Sprint(s.config.Serving.HealthzPort))
	listener := daemon.Listener{Address: address, Handler: daemon.Endpoints(checks, registry), Logger: s.logger}
	return listener.Serve(ctx)
}

func (s *Servers) address(port int32) string {
	return net.JoinHostPort(s.config.Serving.Address, fmt.Sprint(port))
}
