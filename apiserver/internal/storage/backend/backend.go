package backend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/tracing"
)

const (
	etcdDialTimeout = 20 * time.Second
	etcdKeepAlive   = 30 * time.Second
	maxEtcdMessage  = 64 << 20
	// How much etcd may send ahead of being read.
	etcdStreamWindow = 1 << 20
	etcdConnWindow   = 4 << 20
)

// Backend is the store of an API server and what runs with it.
type Backend struct {
	// Storage is where objects are stored.
	Storage storage.Interface
	// Client is the etcd client that Storage uses.
	Client *clientv3.Client
	// Compactor drops old revisions.
	Compactor *etcd.Compactor
	// Failed delivers why an embedded etcd stopped by itself; nil without one.
	Failed <-chan error
	// Metrics are those of an embedded etcd; none without one.
	Metrics prometheus.Gatherer
	// Close closes the connection, or stops the embedded etcd.
	Close func() error

	flags  *config.Options
	clock  clock.Clock
	logger *zap.Logger

	// checked is what Check has last found, and when.
	checked struct {
		mu  sync.Mutex
		at  time.Time
		err error
	}
}

// Options are what Open needs.
type Options struct {
	Flags *config.Options
	// Transformer encrypts what is stored; nil stores it as it is.
	Transformer etcd.Transformer
	Metrics     *measured.Metrics
	Forms       etcd.Forms      // see there
	Tracer      *tracing.Tracer // of requests to an external etcd; nil for no tracing
	Clock       clock.WithTicker
	Logger      *zap.Logger
}

// Open connects to the etcd that the flags name, or starts one in the data
// directory. It does not wait for an external etcd to answer.
func Open(ctx context.Context, o Options) (*Backend, error) {
	if len(o.Flags.EtcdServers) > 0 {
		return connect(o)
	}
	embedded, err := etcd.StartEmbedded(ctx, filepath.Join(o.Flags.DataDir, "etcd"), o.Logger)
	if err != nil {
		return nil, err
	}
	b := o.backend(etcd.Options{Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: embedded.Revision})
	b.Failed, b.Metrics, b.Close = embedded.Err(), prometheus.GathererFunc(etcd.Metrics), embedded.Stop
	return b, nil
}

// backend returns a Backend that stores in the etcd that store names.
func (o Options) backend(store etcd.Options) *Backend {
	store.Transformer, store.Forms, store.Clock = o.Transformer, o.Forms, o.Clock
	return &Backend{
		Storage:   measured.Store{Interface: etcd.NewStore(store), Metrics: o.Metrics, Clock: o.Clock},
		Client:    store.Client,
		Compactor: &etcd.Compactor{Client: store.Client, Interval: o.Flags.Operation.CompactionInterval, Clock: o.Clock, Logger: o.Logger},
		Metrics:   prometheus.Gatherers{},
		flags:     o.Flags, clock: o.Clock, logger: o.Logger,
	}
}

func connect(o Options) (*Backend, error) {
	security, err := etcdTLS(o.Flags, o.Logger)
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithUserAgent("kctl-apiserver"),
		// Fixed windows: otherwise gRPC measures the connection for as long as it
		// lives, with a ping for nearly every answer.
		grpc.WithStaticStreamWindowSize(etcdStreamWindow), grpc.WithStaticConnWindowSize(etcdConnWindow),
	}
	if o.Tracer != nil {
		options = append(options, grpc.WithStatsHandler(o.Tracer.GRPCClient()))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: o.Flags.EtcdServers, TLS: security,
		DialTimeout: etcdDialTimeout, DialKeepAliveTime: etcdKeepAlive, DialKeepAliveTimeout: etcdKeepAlive / 3,
		MaxCallRecvMsgSize: maxEtcdMessage, MaxCallSendMsgSize: maxEtcdMessage,
		DialOptions: options, Logger: etcd.ClientLogger(o.Logger),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %v: %w", o.Flags.EtcdServers, err)
	}
	b := o.backend(etcd.Options{Client: client})
	b.Close = func() error {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("close etcd client: %w", err)
		}
		return nil
	}
	return b, nil
}

func etcdTLS(o *config.Options, logger *zap.Logger) (*tls.Config, error) {
	if o.EtcdCAFile == "" && o.EtcdCertFile == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.EtcdCAFile != "" {
		var err error
		if c.RootCAs, err = pki.Pool("etcd certificate authority", o.EtcdCAFile); err != nil {
			return nil, err
		}
	}
	if o.EtcdCertFile != "" {
		reloader, err := daemon.Certificate(o.EtcdCertFile, o.EtcdKeyFile, clock.RealClock{}, logger.Named("etcd"))
		if err != nil {
			return nil, fmt.Errorf("etcd client %w", err)
		}
		c.GetClientCertificate = reloader.GetClientCertificate
	}
	return c, nil
}

// Check says whether etcd answers, as the health checks ask. These are open to strangers:
// however many ask, etcd is read once in half of --etcd-healthcheck-timeout, as upstream.
func (b *Backend) Check(ctx context.Context) error {
	b.checked.mu.Lock()
	defer b.checked.mu.Unlock()
	if b.checked.at.IsZero() || b.clock.Since(b.checked.at) >= b.flags.EtcdCheckTimeout/2 {
		b.checked.err = b.read(context.WithoutCancel(ctx)) // others get this answer, too
		b.checked.at = b.clock.Now()
	}
	return b.checked.err
}

// read reads something from etcd, and waits up to --etcd-healthcheck-timeout for the
// answer.
func (b *Backend) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.flags.EtcdCheckTimeout)
	defer cancel()
	if _, err := b.Storage.Get(ctx, "health"); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("etcd does not answer: %w", err)
	}
	return nil
}
