package kubelet

import (
	"cmp"
	"context"
	"net"
	"path/filepath"
	"runtime"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/certificate"
	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/server"
	"kctl/kubelet/internal/server/auth"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// nodeLogs is where the machine keeps its logs.
const nodeLogs = "/var/log"

// serve answers on the kubelet's ports until ctx ends; listening is called once it is known
// which --port is, or that there is none.
func (k *Kubelet) serve(ctx context.Context, listening func()) error {
	if !k.config.EnableServer && k.config.ReadOnlyPort == 0 {
		listening()
		return nil
	}
	clients, err := daemon.ClientAuthorities("client certificate authority", k.config.ClientCAFile, k.clock, k.logger)
	if err != nil {
		return err
	}
	s, err := k.newServer(clients)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if k.config.ReadOnlyPort != 0 {
		group.Go(func() error { return k.serveReadOnly(ctx, s) })
	}
	if k.config.EnableServer {
		group.Go(func() error { return k.serveTLS(ctx, s, clients, listening) })
	} else {
		listening()
	}
	return group.Wait()
}

// newServer returns the server of both ports.
func (k *Kubelet) newServer(clients *pki.Authorities) (*server.Server, error) {
	config := server.Config{
		NodeName: k.nodeName, Authenticator: k.authenticator(clients), Authorizer: k.authorizer(),
		Pods: k.pods, Sandboxes: k.cache.All, Status: k.statuses.Get, Runtime: k.cri, Health: k.healthChecks(), Metrics: k.registry,
		Configz: func() any { return k.config.Effective() },
		Usage:   func() (node.Usage, error) { return node.ReadUsage(k.config.RootDir, k.clock.Now()) },
		Groups:  k.groupUsage, GroupDetails: k.groupDetails, ClassGroups: k.classDetails, Daemons: k.daemonUsage, Interfaces: k.podInterfaces,
		PodUsage: k.usages.get, ProbeMetrics: k.metrics.Probes.Registry,
		Tracer:      k.tracer,
		Machine:     func() corev1.NodeStatus { return k.node.Node().Status },
		Checkpoints: filepath.Join(k.config.RootDir, "checkpoints"),
		Clock:       k.clock, Logger: k.logger, Debugging: k.config.EnableDebuggingHandlers, Profiling: k.config.EnableProfilingHandler,
	}
	config.Pages.Started, config.Pages.Flags = k.clock.Now(), k.config.Flags
	if k.config.EnableSystemLogHandler {
		config.NodeLogs, config.NodeLogQueries = nodeLogs, k.config.EnableSystemLogQuery
	}
	if k.config.CPUCFSQuota {
		config.CPUPeriod = cmp.Or(k.config.CPUCFSQuotaPeriod.Microseconds(), cgroup.Period)
	}
	if k.config.EnableDebugFlagsHandler {
		config.Log = &k.config.Log
	}
	if k.config.EnableDebuggingHandlers && k.config.EnableProfilingHandler && k.config.EnableContentionProfiling {
		runtime.SetBlockProfileRate(1)
	}
	return server.New(config)
}

func (k *Kubelet) serveReadOnly(ctx context.Context, s *server.Server) error {
	k.logger.Warn("the read-only port exposes this node's pods to anyone who can reach it", zap.Int32("port", k.config.ReadOnlyPort))
	listener := daemon.Listener{Address: k.address(k.config.ReadOnlyPort), Handler: s.ReadOnly(), Logger: k.logger}
	return listener.Serve(ctx)
}

func (k *Kubelet) serveTLS(ctx context.Context, s *server.Server, clients *pki.Authorities, listening func()) error {
	if k.config.AnonymousAuth && k.config.AuthorizationMode == "AlwaysAllow" {
		k.logger.Warn("anyone who can reach the kubelet's port has full access: anonymous requests are allowed, and authorization is off")
	}
	certFile, keyFile := k.config.TLSCertFile, k.config.TLSKeyFile
	if k.config.ServerTLSBootstrap {
		o := k.servingCertificates()
		if err := certificate.Provide(o); err != nil {
			return err
		}
		certFile, keyFile = o.File(), o.File()
	}
	return s.Run(ctx, server.ListenOptions{
		TLS:     k.config.TLS,
		Address: k.address(k.config.Port), CertFile: certFile, KeyFile: keyFile,
		CertDir: k.config.CertDir, Clients: clients, DNSNames: []string{k.nodeName}, IPs: k.servingIPs(),
		OnListen: func(address net.Addr) {
			if tcp, ok := address.(*net.TCPAddr); ok {
				k.port.Store(int32(tcp.Port))
			}
			listening()
		},
	})
}

// authenticator recognises clients by certificate, and by token if there is an
// API server to vouch for it.
func (k *Kubelet) authenticator(clients *pki.Authorities) *auth.Authenticator {
	return auth.NewAuthenticator(auth.Authentication{
		Certificates: clients,
		Tokens:       k.config.AuthenticationTokenWebhook && k.client != nil,
		Anonymous:    k.config.AnonymousAuth,
		CacheTTL:     k.config.CacheTTLs.Token,
	}, k.client, k.clock)
}

// authorizer lets the API server decide. Without one, every authenticated
// client, with a certificate of our own CA, may do everything.
func (k *Kubelet) authorizer() *auth.Authorizer {
	if k.config.AuthorizationMode == "AlwaysAllow" || k.client == nil {
		return auth.AlwaysAllow()
	}
	return auth.NewAuthorizer(k.nodeName, k.client, k.config.CacheTTLs, k.clock)
}
