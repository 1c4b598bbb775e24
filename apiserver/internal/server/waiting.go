package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"kctl/proto/daemon"
)

// waitForEtcd waits until etcd answers, and says what it waits for and why.
// Nothing that time could heal ends it; certificates that one of the two does
// not accept do.
func (s *Server) waitForEtcd(ctx context.Context) error {
	said := ""
	for failures := 1; ; failures++ {
		err := s.backend.check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		reason := s.whyNoEtcd(ctx)
		if reason == nil {
			reason = err
		}
		if isCertificateProblem(reason) {
			return fmt.Errorf("etcd at %s: %w; see that --etcd-cafile, --etcd-certfile and --etcd-keyfile are of etcd's own authority", s.etcd(), reason)
		}
		if reason.Error() != said {
			said = reason.Error()
			s.logger.Warn("waiting for etcd", zap.Strings("servers", s.options.EtcdServers), zap.Error(reason))
			daemon.Waiting("etcd at "+s.etcd()+": "+said, s.logger)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.clock.After(startPolicy.Delay(failures)):
		}
	}
}

func (s *Server) etcd() string { return strings.Join(s.options.EtcdServers, ", ") }

// whyNoEtcd asks the servers' own health endpoints: unlike etcd's client they
// tell what went wrong with a connection. It returns nil where it learns nothing.
func (s *Server) whyNoEtcd(ctx context.Context) error {
	security, err := etcdTLS(s.options)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	client := http.Client{Transport: transport, Timeout: s.options.EtcdCheckTimeout}
	var errs []error
	for _, server := range s.options.EtcdServers {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+"/health", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		switch {
		case err != nil:
			errs = append(errs, errors.Unwrap(err)) // of url.Error, which repeats the address
		case answer.StatusCode != http.StatusOK:
			errs = append(errs, fmt.Errorf("%s: it is not healthy (%s): has it lost its quorum?", server, answer.Status))
		}
		if err == nil {
			_ = answer.Body.Close()
		}
	}
	return errors.Join(errs...)
}

// isCertificateProblem tells whether one side does not accept the other's
// certificate.
func isCertificateProblem(err error) bool {
	var unverified *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	return errors.As(err, &unverified) || errors.As(err, &authority) || errors.As(err, &name) ||
		strings.Contains(err.Error(), "remote error: tls: ") // alerts have no exported type
}

// watchdog tells the service manager that the server is alive.
func (s *Server) watchdog(ctx context.Context) error {
	// An etcd that is silent does not come back by our being started again.
	return daemon.Watchdog(ctx, s.health, s.clock, s.logger, etcdCheck)
}
