package balance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
)

// Options of New.
type Options struct {
	Backends       []string      // HOST:PORT of each server
	CheckEvery     time.Duration // from one answer to the next question
	CheckTimeout   time.Duration // how long a server may take to answer, or to accept
	Patience       time.Duration // how long one side may stay, at least, when the other has left; twice as long at most
	MaxConnections int           // at a time; more wait to be accepted
	Clock          clock.Clock
	Logger         *zap.Logger
}

// Balancer spreads connections over servers.
type Balancer struct {
	Options
	backends []*backend
	checker  *http.Client
	next     atomic.Uint64
	slots    chan struct{}
}

// New returns a Balancer; Run makes it serve.
func New(o Options) (*Balancer, error) {
	if len(o.Backends) == 0 {
		return nil, errors.New("no servers configured")
	}
	if o.CheckEvery <= 0 || o.CheckTimeout <= 0 || o.Patience <= 0 || o.MaxConnections <= 0 {
		return nil, errors.New("times and bounds must be positive")
	}
	b := &Balancer{Options: o, checker: newChecker(o.CheckTimeout), slots: make(chan struct{}, o.MaxConnections)}
	for _, address := range o.Backends {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("server %q: %w", address, err)
		}
		b.backends = append(b.backends, &backend{address: address, streams: map[*stream]bool{}})
	}
	return b, nil
}

// Run serves listener, and watches over the servers, until ctx ends.
func (b *Balancer) Run(ctx context.Context, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range b.backends {
		group.Go(func() error { return b.checkPeriodically(ctx, one) })
	}
	group.Go(func() error { return b.cutOffPeriodically(ctx) })
	group.Go(func() error {
		<-ctx.Done()
		return listener.Close()
	})
	group.Go(func() error {
		for {
			select {
			case b.slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			client, err := listener.Accept()
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				<-b.slots
				b.Logger.Warn("a connection could not be accepted", zap.Error(err))
				if backoff.Sleep(ctx, b.Clock, time.Second) != nil { // out of file descriptors, perhaps
					return nil
				}
				continue
			}
			group.Go(func() error {
				defer func() { <-b.slots }()
				b.serve(ctx, client)
				return nil
			})
		}
	})
	return group.Wait()
}

// checkPeriodically checks one server repeatedly.
func (b *Balancer) checkPeriodically(ctx context.Context, one *backend) error {
	for {
		err := checkReady(ctx, b.checker, one.address)
		if ctx.Err() != nil {
			return nil
		}
		if one.setHealth(err) {
			if err == nil {
				b.Logger.Info("server answers", zap.String("server", one.address))
			} else {
				b.Logger.Warn("server does not answer, and gets no connections", zap.String("server", one.address), zap.Error(err))
			}
		}
		if backoff.Sleep(ctx, b.Clock, b.CheckEvery) != nil {
			return nil
		}
	}
}

// cutOffPeriodically gives back the places of those who stay when the other side has left: a client that a server
// has turned away, and that neither reads nor leaves, would keep its place for ever, and all places together are
// few. It looks at the connections themselves, because the end of what one side sends is not seen while the other does
// not take what was before it.
func (b *Balancer) cutOffPeriodically(ctx context.Context) error {
	for backoff.Sleep(ctx, b.Clock, b.Patience) == nil {
		for _, one := range b.backends {
			one.cutOff()
		}
	}
	return nil
}

// serve connects a client to the first server that can be reached, the healthy
// ones first, beginning with another one each time.
func (b *Balancer) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	for _, one := range b.candidates() {
		dialer := net.Dialer{Timeout: b.CheckTimeout}
		server, err := dialer.DialContext(ctx, "tcp", one.address)
		if err != nil {
			b.Logger.Debug("server can't be reached", zap.String("server", one.address), zap.Error(err))
			continue
		}
		both := &stream{client: client, server: server}
		one.add(both)
		defer one.remove(both)
		defer server.Close()
		stop := context.AfterFunc(ctx, both.close)
		defer stop()
		pipe(client, server)
		return
	}
	b.Logger.Warn("no server can be reached", zap.Stringer("client", client.RemoteAddr()))
}

// candidates are all servers in the order in which they are to be tried.
func (b *Balancer) candidates() []*backend {
	first := int(b.next.Add(1) % uint64(len(b.backends)))
	var well, ill []*backend
	for i := range b.backends {
		one := b.backends[(first+i)%len(b.backends)]
		if one.isHealthy() {
			well = append(well, one)
		} else {
			ill = append(ill, one)
		}
	}
	return append(well, ill...)
}

// pipe passes bytes both ways until both sides have ended, or one is broken or closed.
func pipe(client, server net.Conn) {
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			to.Close()
			from.Close()
			return
		}
		if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite() // the other side may be gone
		}
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// Healthy returns an error if no server answers.
func (b *Balancer) Healthy(context.Context) error {
	if slices.ContainsFunc(b.backends, (*backend).isHealthy) {
		return nil
	}
	return errors.New("no server answers")
}

var (
	upDesc          = prometheus.NewDesc("kctl_balancer_server_up", "Whether the server answers.", []string{"server"}, nil)
	connectionsDesc = prometheus.NewDesc("kctl_balancer_connections", "Connections to the server.", []string{"server"}, nil)
)

// Describe implements prometheus.Collector.
func (b *Balancer) Describe(c chan<- *prometheus.Desc) { c <- upDesc; c <- connectionsDesc }

// Collect implements prometheus.Collector.
func (b *Balancer) Collect(c chan<- prometheus.Metric) {
	for _, one := range b.backends {
		up := 0.0
		if one.isHealthy() {
			up = 1
		}
		c <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up, one.address)
		c <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(one.connections()), one.address)
	}
}
