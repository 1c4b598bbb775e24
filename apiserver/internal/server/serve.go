package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/sni"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

const (
	// readHeaderTimeout bounds how long a connection may take to say anything.
	readHeaderTimeout = 30 * time.Second
	idleTimeout       = 3 * time.Minute
	// streamsPerConnection is how many requests, watches among them, one HTTP/2
	// connection may carry; clients open another one beyond it.
	streamsPerConnection = 250
	// PortFile tells, in the data directory, which port was taken.
	PortFile = "apiserver.port"
)

// servingTLS returns the TLS configuration and the file of the certificate
// that is shown, which is a self-signed one where the options name none.
func servingTLS(o *config.Options, clock clock.PassiveClock, logger *zap.Logger) (*tls.Config, string, error) {
	subject := pki.Subject{
		CommonName: "apiserver",
		IPs:        []net.IP{net.ParseIP(o.BindAddress), net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	}
	cert, key, err := pki.ServingFiles(o.TLSCertFile, o.TLSKeyFile, o.CertDir, subject, clock.Now())
	if err != nil {
		return nil, "", err
	}
	reloader, err := pki.NewReloader(cert, key, clock)
	if err != nil {
		return nil, "", err
	}
	if err := reloader.Untimely(); err != nil {
		logger.Warn("clients do not believe the certificate that is served", zap.Error(err))
	}
	c, err := pki.ServerTLS(reloader, "")
	if err != nil {
		return nil, "", err
	}
	if err := operationTLS(c, &o.Operation, clock); err != nil {
		return nil, "", err
	}
	if o.ClientCAFile != "" || o.RequestHeader.ClientCAFile != "" {
		// Asked for, and judged by authentication, which can answer in words.
		c.ClientAuth = tls.RequestClientCert
	}
	return c, cert, nil
}

// listen opens the port and writes down which one it is.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	address := net.JoinHostPort(s.options.BindAddress, strconv.Itoa(s.options.SecurePort))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	s.port = port
	if err := pki.WriteFile(filepath.Join(s.options.DataDir, PortFile), []byte(strconv.Itoa(port)+"\n")); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// serve answers requests until ctx ends, and then drains: not ready, but
// serving, for the shutdown delay; then no new connections, watches and streams
// ended, and requests under way finished.
func (s *Server) serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           withStack(s.withoutSlash(handler)),
		TLSConfig:         s.tls,
		Protocols:         daemon.Protocols(s.tls),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: cmp.Or(s.options.Operation.HTTP2MaxStreams, streamsPerConnection)},
		ErrorLog:          daemon.ConnectionLog(s.logger),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return s.end(context.WithoutCancel(ctx), server)
	})
	return group.Wait()
}

func (s *Server) end(ctx context.Context, server *http.Server) error {
	s.logger.Info("draining", zap.Duration("delay", s.options.ShutdownDelay))
	close(s.stopping)
	<-s.clock.After(s.options.ShutdownDelay)
	s.endStreams()
	ctx, cancel := context.WithTimeout(ctx, s.options.RequestTimeout)
	defer cancel()
	if s.options.Operation.ShutdownSendRetryAfter {
		s.drain.Wait(ctx)
	}
	if err := server.Shutdown(ctx); err != nil {
		s.logger.Warn("requests were cut off", zap.Error(err))
		return server.Close()
	}
	return nil
}

// operationTLS brings the flags on TLS into a configuration that shows one
// certificate.
func operationTLS(c *tls.Config, o *config.Operation, clock clock.PassiveClock) (err error) {
	if err := o.TLS.Apply(c); err != nil {
		return err
	}
	named, err := o.SNICertificates()
	if err != nil || len(named) == 0 {
		return err
	}
	c.GetCertificate, err = sni.ByName(named, c.GetCertificate, clock)
	return err
}
