package serving

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

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/sni"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

const (
	// readHeaderTimeout bounds how long a connection may take to send a request's headers.
	readHeaderTimeout = 30 * time.Second
	idleTimeout       = 3 * time.Minute
	// streamsPerConnection is how many requests, including watches, one HTTP/2
	// connection may carry, as with upstream; clients open another one for more. Go cuts a
	// connection with four times as many that were begun and reset at once (CVE-2023-44487).
	streamsPerConnection = 100
	// PortFile holds the port, in the data directory.
	PortFile = "apiserver.port"
)

// TLS returns the TLS configuration and the file of the serving certificate, a
// self-signed one if the options name none. Files are read again when they
// change.
func TLS(o *config.Options, clock clock.PassiveClock, logger *zap.Logger) (*tls.Config, string, error) {
	subject := pki.Subject{
		CommonName: "apiserver",
		IPs:        []net.IP{net.ParseIP(o.BindAddress), net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	}
	cert, key, err := pki.ServingFiles(o.TLSCertFile, o.TLSKeyFile, o.CertDir, subject, clock.Now())
	if err != nil {
		return nil, "", err
	}
	c, err := o.Operation.TLS.Serve(cert, key, nil, clock, logger)
	if err != nil {
		return nil, "", err
	}
	if err := showByName(c, &o.Operation, clock, logger); err != nil {
		return nil, "", err
	}
	var of []func() []byte
	for _, file := range []string{o.ClientCAFile, o.RequestHeader.ClientCAFile} {
		if file == "" {
			continue
		}
		authorities, err := daemon.ClientAuthorities("authorities of clients", file, clock, logger)
		if err != nil {
			return nil, "", err
		}
		of = append(of, authorities.PEM)
	}
	if len(of) > 0 { // requested, and checked by authentication, which can explain a refusal
		pki.TakeClients(c, tls.RequestClientCert, of...)
	}
	return c, cert, nil
}

// Listen opens the port and writes its number to PortFile.
func Listen(ctx context.Context, o *config.Options) (net.Listener, error) {
	address := net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if err := pki.WriteFile(filepath.Join(o.DataDir, PortFile), []byte(strconv.Itoa(Port(listener))+"\n")); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// Port is the port of a listener that Listen returned.
func Port(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

// Server answers requests on one port until it is stopped and drained.
type Server struct {
	Flags *config.Options
	TLS   *tls.Config
	// Stopping is called when the server is told to stop: it is no longer ready,
	// but still serves.
	Stopping func()
	// EndStreams ends watches and streams.
	EndStreams func()
	// Drain knows the requests in flight.
	Drain   *filters.Drain
	Metrics prometheus.Registerer
	Clock   clock.Clock
	Logger  *zap.Logger
}

// Serve answers requests until ctx ends, and then drains: during the shutdown
// delay it is not ready but still serves; then it accepts no new connections,
// ends watches and streams, and waits for the requests in flight, as long as one
// may take. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	connections := daemon.NewConnections(s.Logger)
	listener = connections.Bound(listener)
	server := &http.Server{
		Handler:           withStack(handler),
		TLSConfig:         s.TLS,
		Protocols:         daemon.Protocols(s.TLS),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: cmp.Or(s.Flags.Operation.HTTP2MaxStreams, streamsPerConnection)},
		ErrorLog:          daemon.ConnectionLog(s.Logger, s.handshakeErrors()),
	}
	connections.Guard(server)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return s.drain(context.WithoutCancel(ctx), server)
	})
	return group.Wait()
}

// handshakeErrors counts the connections whose client does not speak TLS as the server does.
func (s *Server) handshakeErrors() prometheus.Counter {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_tls_handshake_errors_total", Help: "Connections that ended with an error of the TLS handshake.",
	})
	s.Metrics.MustRegister(counter)
	return counter
}

func (s *Server) drain(ctx context.Context, server *http.Server) error {
	s.Logger.Info("draining", zap.Duration("delay", s.Flags.ShutdownDelay))
	s.Stopping()
	<-s.Clock.After(s.Flags.ShutdownDelay)
	s.EndStreams()
	ctx, cancel := context.WithTimeout(ctx, s.Flags.RequestTimeout)
	defer cancel()
	if s.Flags.Operation.ShutdownSendRetryAfter {
		s.Drain.Wait(ctx)
	}
	if err := server.Shutdown(ctx); err != nil {
		s.Logger.Warn("requests were cut off", zap.Error(err))
		return server.Close()
	}
	return nil
}

// showByName shows clients that ask for one of --tls-sni-cert-key's names its
// certificate.
func showByName(c *tls.Config, o *config.Operation, clock clock.PassiveClock, logger *zap.Logger) error {
	named, err := o.SNICertificates()
	if err != nil || len(named) == 0 {
		return err
	}
	c.GetCertificate, err = sni.ByName(named, c.GetCertificate, clock, logger)
	return err
}
