package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"kctl/proto/backoff"
	"kctl/proto/daemon"
)

// waitPolicy is the back-off between attempts to reach etcd.
var waitPolicy = backoff.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second, Jitter: 0.2}

// Wait waits until etcd answers, and logs what it waits for and why. It gives
// up only on errors that time does not heal: certificates that one side does
// not accept.
func (b *Backend) Wait(ctx context.Context) error {
	said := ""
	for failures := 1; ; failures++ {
		err := b.read(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		reason := b.whyNoEtcd(ctx)
		if reason == nil {
			reason = err
		}
		if isCertificateProblem(reason) {
			return fmt.Errorf("etcd at %s: %w; see that --etcd-cafile, --etcd-certfile and --etcd-keyfile are of etcd's own authority",
				b.servers(), reason)
		}
		if reason.Error() != said {
			said = reason.Error()
			b.logger.Warn("waiting for etcd", zap.Strings("servers", b.flags.EtcdServers), zap.Error(reason))
			daemon.Waiting("etcd at "+b.servers()+": "+said, b.logger)
		}
		if err := backoff.Sleep(ctx, b.clock, waitPolicy.Delay(failures)); err != nil {
			return err
		}
	}
}

const healthPath = "/health"

func (b *Backend) servers() string { return strings.Join(b.flags.EtcdServers, ", ") }

// whyNoEtcd asks the servers' health endpoints: unlike etcd's client, an HTTP
// client says what went wrong with a connection. It returns nil if it learns
// nothing.
func (b *Backend) whyNoEtcd(ctx context.Context) error {
	security, err := etcdTLS(b.flags, zap.NewNop())
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	transport.RegisterProtocol("unix", socketTransport{})
	client := http.Client{Transport: transport, Timeout: b.flags.EtcdCheckTimeout}
	var errs []error
	for _, server := range b.flags.EtcdServers {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+healthPath, nil)
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

// socketTransport only finds out whether anything listens on a unix socket: the
// path of its URL is the socket's file, so none is left for a request.
type socketTransport struct{}

func (socketTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var d net.Dialer
	c, err := d.DialContext(r.Context(), "unix", strings.TrimSuffix(r.URL.Path, healthPath))
	if err != nil {
		return nil, err
	}
	_ = c.Close()
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// isCertificateProblem reports whether one side does not accept the other's
// certificate.
func isCertificateProblem(err error) bool {
	var unverified *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	return errors.As(err, &unverified) || errors.As(err, &authority) || errors.As(err, &name) ||
		strings.Contains(err.Error(), "remote error: tls: ") // alerts have no exported type
}
