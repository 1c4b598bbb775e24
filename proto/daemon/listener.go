package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// NewRegistry returns a metrics registry that already has the Go runtime's and
// the process's metrics, and upstream's about what was built.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newBuildInfo())
	return r
}

// newBuildInfo is always 1; the information is in its labels.
func newBuildInfo() prometheus.Collector {
	v := Version()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubernetes_build_info", Help: "A metric with a constant '1' value labeled by what was built, from what and for what.",
		ConstLabels: prometheus.Labels{
			"major": v.Major, "minor": v.Minor, "git_version": v.GitVersion, "git_commit": v.GitCommit, "git_tree_state": v.GitTreeState,
			"build_date": v.BuildDate, "go_version": v.GoVersion, "compiler": v.Compiler, "platform": v.Platform,
		},
	}, func() float64 { return 1 })
}

// Endpoints is the handler of a daemon's operational paths: health, metrics,
// version. Callers may add their own paths to the mux.
func Endpoints(health *Health, metrics prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	for _, e := range []string{Healthz, Livez, Readyz} {
		mux.Handle("GET /"+e, health)
		mux.Handle("GET /"+e+"/{check...}", health)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.Handle("GET "+SLIsPath, health.SLIs())
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Version())
	})
	return mux
}

const shutdownGrace = 5 * time.Second

// Protocols are those of a server that shows tlsConfig: HTTP/1.1 alone where it
// names protocols without HTTP/2, and Go's otherwise.
func Protocols(tlsConfig *tls.Config) *http.Protocols {
	if tlsConfig == nil || len(tlsConfig.NextProtos) == 0 || slices.Contains(tlsConfig.NextProtos, "h2") {
		return nil
	}
	only := new(http.Protocols)
	only.SetHTTP1(true)
	return only
}

// ConnectionLog turns what net/http logs about single connections into debug
// lines: most of it is about clients that went away or don't speak TLS. It counts the
// latter in handshakes, unless that is nil.
func ConnectionLog(logger *zap.Logger, handshakes prometheus.Counter) *log.Logger {
	return log.New(&connectionLog{logger, handshakes}, "", 0)
}

type connectionLog struct {
	logger     *zap.Logger
	handshakes prometheus.Counter
}

func (l *connectionLog) Write(line []byte) (int, error) {
	// net/http tells of it in no other way.
	if l.handshakes != nil && bytes.HasPrefix(line, []byte("http: TLS handshake error from")) {
		l.handshakes.Inc()
	}
	l.logger.Debug("connection", zap.String("problem", strings.TrimSpace(string(line))))
	return len(line), nil
}

// Listener is where a program answers.
type Listener struct {
	Address string
	Handler http.Handler
	// TLS is nil for plain HTTP, which is for loopback health ports only. HTTP/2 is
	// spoken unless it names protocols without it.
	TLS    *tls.Config
	Logger *zap.Logger
	// OnListen, if not nil, is called with the real address.
	OnListen func(net.Addr)
}

// Serve answers until ctx ends, then lets requests under way finish for a few
// seconds.
func (l *Listener) Serve(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", l.Address, err)
	}
	if l.OnListen != nil {
		l.OnListen(listener.Addr())
	}
	connections := NewConnections(l.Logger)
	listener = connections.Bound(listener)
	server := &http.Server{
		Handler:           l.Handler,
		TLSConfig:         l.TLS,
		Protocols:         Protocols(l.TLS),
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          ConnectionLog(l.Logger, nil),
	}
	connections.Guard(server)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		var err error
		if l.TLS != nil {
			err = server.ServeTLS(listener, "", "")
		} else {
			err = server.Serve(listener)
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("serve on %s: %w", l.Address, err)
	})
	group.Go(func() error {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	})
	return group.Wait()
}
