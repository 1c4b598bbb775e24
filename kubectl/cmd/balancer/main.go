// Command balancer spreads TCP connections over those of a cluster's API servers
// that answer.
package main

import (
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/balance"
	"kctl/proto/daemon"
)

// patience bounds how long a slow client may take to receive the end of a long answer from a server that has
// closed the connection.
const patience = 30 * time.Second

func main() {
	var listen, health string
	var logging daemon.LogOptions
	o := balance.Options{Clock: clock.RealClock{}, Patience: patience}
	cmd := &cobra.Command{
		Use:   "balancer --server HOST:PORT...",
		Short: "Spreads TCP connections over the API servers that answer",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := logging.Logger()
			if err != nil {
				return &daemon.UsageError{Err: err}
			}
			o.Logger = logger
			b, err := balance.New(o)
			if err != nil {
				return &daemon.UsageError{Err: err}
			}
			listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return fmt.Errorf("listen on %s: %w", listen, err)
			}
			checks, metrics := daemon.NewHealth(), daemon.NewRegistry()
			checks.Add("servers", b.Healthy)
			metrics.MustRegister(b)
			daemon.Ready(logger)
			group, ctx := errgroup.WithContext(cmd.Context())
			group.Go(func() error { return b.Run(ctx, listener) })
			healthy := daemon.Listener{Address: health, Handler: daemon.Endpoints(checks, metrics), Logger: logger}
			group.Go(func() error { return healthy.Serve(ctx) })
			return group.Wait()
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", ":6443", "address to take connections on")
	f.StringVar(&health, "healthz-bind-address", "127.0.0.1:8081", "address of health checks and metrics, in plain HTTP")
	f.StringSliceVar(&o.Backends, "server", nil, "HOST:PORT of an API server; may be repeated")
	f.DurationVar(&o.CheckEvery, "check-every", 2*time.Second, "time between two questions to a server whether it is ready")
	f.DurationVar(&o.CheckTimeout, "check-timeout", 5*time.Second, "how long a server may take to answer")
	f.IntVar(&o.MaxConnections, "max-connections", 10000, "connections at a time; more wait")
	logging.AddFlags(f)
	daemon.Main(cmd)
}
