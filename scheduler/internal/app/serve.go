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

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/scheduler/internal/config"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/profile"
)

const selfSignedLasts = 365 * 24 * time.Hour

// serve answers health checks for anyone, and metrics, explanations and the
// paths of daemon.Debug for those who may use them.
func (s *parts) serve(ctx context.Context, options *config.Options, configuration *profile.Configuration, pods func() []*core.Pod) error {
	clients, err := daemon.ClientAuthorities("client certificate authority", options.ClientCA, s.clock, s.logger)
	if err != nil {
		return &daemon.UsageError{Err: err}
	}
	tlsConfig, err := s.servingTLS(options, clients)
	if err != nil {
		return &daemon.UsageError{Err: err}
	}
	registry := daemon.NewRegistry()
	registry.MustRegister(s.metrics, s.gauges, s.requests)
	registry.MustRegister(daemon.Features(nil)...)
	mux := daemon.Endpoints(s.health, registry)
	mux.Handle("GET /debug/explain", explainHandler(s.explainer))
	resources := prometheus.NewRegistry()
	resources.MustRegister(metrics.Resources{Pods: pods})
	mux.Handle("GET /metrics/resources", promhttp.HandlerFor(resources, promhttp.HandlerOpts{}))
	pages := &daemon.Pages{
		Program: "kube-scheduler", Clock: s.clock, Started: s.clock.Now(), Flags: options.Flags(),
		Config: map[string]any{"componentconfig": configuration.Effective()},
		Paths:  []string{daemon.ConfigPath, daemon.FlagsPath, "/healthz", "/livez", "/metrics", "/readyz"},
	}
	pages.AddTo(mux)
	if options.Profiling {
		if options.ContentionProfiling {
			runtime.SetBlockProfileRate(1)
		}
		mux.Handle(daemon.DebugPath, daemon.Debug(&options.Logging, s.logger))
	}
	asks, err := s.reviews(options)
	if err != nil {
		return err
	}
	handler := &authFilter{next: mux, reviews: asks, public: options.AlwaysAllowPaths, clients: clients, clock: s.clock}
	listener := daemon.Listener{Address: options.Address(), Handler: handler, TLS: tlsConfig, Logger: s.logger, OnListen: func(address net.Addr) {
		s.logger.Info("serving health checks and metrics", zap.Stringer("address", address))
	}}
	return listener.Serve(ctx)
}

// reviews asks with the identities configured for it, or with the scheduler's
// own.
func (s *parts) reviews(options *config.Options) (r reviews, err error) {
	r = reviews{tokens: s.client, access: s.client}
	if options.AuthenticationKubeconfig != "" {
		if r.tokens, err = connect(options.AuthenticationKubeconfig, "", s.requests, s.logger); err != nil {
			return r, fmt.Errorf("--authentication-kubeconfig: %w", err)
		}
	}
	if options.AuthorizationKubeconfig != "" {
		if r.access, err = connect(options.AuthorizationKubeconfig, "", s.requests, s.logger); err != nil {
			return r, fmt.Errorf("--authorization-kubeconfig: %w", err)
		}
	}
	return r, nil
}

// servingTLS is the port's TLS configuration: with the certificate that the flags
// name, or a new self-signed one.
func (s *parts) servingTLS(options *config.Options, clients *pki.Authorities) (*tls.Config, error) {
	certFile, keyFile := options.CertFile, options.KeyFile
	if certFile == "" && options.CertDir != "" {
		var err error
		subject := pki.Subject{CommonName: "kube-scheduler", IPs: []net.IP{options.BindAddress}, DNSNames: []string{"localhost"}}
		if certFile, keyFile, err = pki.ServingFiles("", "", options.CertDir, subject, s.clock.Now()); err != nil {
			return nil, err
		}
	}
	if certFile != "" {
		return options.TLS.Serve(certFile, keyFile, clients, s.clock, s.logger)
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
	return options.TLS.Show(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }, clients)
}
