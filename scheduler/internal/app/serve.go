package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
	"kctl/scheduler/internal/config"
	"kctl/scheduler/internal/delegatedauth"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/profile"
)

const selfSignedLasts = 365 * 24 * time.Hour

// serve answers health checks for anyone, and metrics, explanations and the
// paths of daemon.Debug for those who may use them.
func (s *parts) serve(ctx context.Context, options *config.Options, configuration *profile.Configuration, pods func() []*core.Pod) error {
	guard, err := s.guard(ctx, options)
	if err != nil {
		return err
	}
	tlsConfig, err := s.servingTLS(options)
	if err != nil {
		return &daemon.UsageError{Err: err}
	}
	pki.TakeClients(tlsConfig, tls.RequestClientCert, guard.Authorities()...) // a bad one is answered with a status
	registry := daemon.NewRegistry()
	registry.MustRegister(s.metrics, s.gauges, s.requests)
	registry.MustRegister(daemon.Features(nil)...)
	mux := daemon.Endpoints(s.health, registry)
	mux.Handle("GET /debug/explain", explainHandler(s.explainer))
	resources := prometheus.NewRegistry()
	resources.MustRegister(metrics.Resources{Pods: pods})
	mux.Handle("GET /metrics/resources", promhttp.HandlerFor(resources, promhttp.HandlerOpts{}))
	pages := &daemon.Pages{
		Program: "kube-scheduler",
		Clock:   s.clock,
		Started: s.clock.Now(),
		Flags:   options.Flags(),
		Config:  map[string]any{"componentconfig": configuration.Effective()},
		Paths:   []string{daemon.ConfigPath, daemon.FlagsPath, "/healthz", "/livez", "/metrics", "/readyz"},
	}
	pages.AddTo(mux)
	if options.Profiling {
		if options.ContentionProfiling {
			runtime.SetBlockProfileRate(1)
		}
		mux.Handle(daemon.DebugPath, daemon.Debug(&options.Logging, s.logger))
	}
	listener := daemon.Listener{
		Address: options.Address(),
		Handler: guard.Protect(mux),
		TLS:     tlsConfig,
		Logger:  s.logger,
		OnListen: func(address net.Addr) {
			s.logger.Info("serving health checks and metrics", zap.Stringer("address", address))
		},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return guard.Run(ctx) })
	group.Go(func() error { return listener.Serve(ctx) })
	return group.Wait()
}

// guard knows whom to let in. It asks with the identities configured for it, or with the
// scheduler's own.
func (s *parts) guard(ctx context.Context, options *config.Options) (*delegatedauth.Guard, error) {
	authentication, err := s.clientOf(options.Access.AuthenticationKubeconfig, options)
	if err != nil {
		return nil, fmt.Errorf("--authentication-kubeconfig: %w", err)
	}
	authorization, err := s.clientOf(options.Access.AuthorizationKubeconfig, options)
	if err != nil {
		return nil, fmt.Errorf("--authorization-kubeconfig: %w", err)
	}
	guard, err := delegatedauth.New(&options.Access, authentication, authorization, s.clock, s.logger)
	if err != nil {
		return nil, &daemon.UsageError{Err: err}
	}
	return guard, guard.LookUp(ctx)
}

// clientOf is the scheduler's own client where the kubeconfig is its own, too, as in kubeadm's
// manifest. --master counts for that one only.
func (s *parts) clientOf(kubeconfig string, options *config.Options) (*rest.Client, error) {
	if kubeconfig == "" || kubeconfig == options.Kubeconfig && options.Master == "" {
		return s.client, nil
	}
	return connect(kubeconfig, "", s.requests, s.logger)
}

// servingTLS is the port's TLS configuration: with the certificate that the flags
// name, or a new self-signed one.
func (s *parts) servingTLS(options *config.Options) (*tls.Config, error) {
	certFile, keyFile := options.CertFile, options.KeyFile
	if certFile == "" && options.CertDir != "" {
		var err error
		subject := pki.Subject{CommonName: "kube-scheduler", IPs: []net.IP{options.BindAddress}, DNSNames: []string{"localhost"}}
		if certFile, keyFile, err = pki.ServingFiles("", "", options.CertDir, subject, s.clock.Now()); err != nil {
			return nil, err
		}
	}
	if certFile != "" {
		return options.TLS.Serve(certFile, keyFile, nil, s.clock, s.logger)
	}
	pair, err := pki.SelfSigned(pki.Subject{
		CommonName: "kctl-scheduler", IPs: []net.IP{options.BindAddress}, DNSNames: []string{"localhost"}, Server: true,
	}, s.clock.Now(), selfSignedLasts)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return options.TLS.Show(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }, nil)
}
