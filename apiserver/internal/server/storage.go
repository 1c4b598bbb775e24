package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/pki"
)

const (
	etcdDialTimeout = 20 * time.Second
	etcdKeepAlive   = 30 * time.Second
	maxEtcdMessage  = 64 << 20
	// What etcd may send before it is read.
	etcdStreamWindow = 1 << 20
	etcdConnWindow   = 4 << 20
)

// backend is the store and whatever runs behind it.
type backend struct {
	storage   storage.Interface
	compactor *etcd.Compactor
	// failed delivers why an embedded etcd ended by itself; nil without one.
	failed <-chan error
	// metrics are an embedded etcd's own; none without one.
	metrics prometheus.Gatherer
	close   func() error
	// checkTimeout is how long etcd may take to answer before it counts as ill.
	checkTimeout time.Duration
}

// openBackend connects to the etcd that the options name, or starts one.
func openBackend(ctx context.Context, o *config.Options, transformer etcd.Transformer, metrics *measured.Metrics, clock clock.WithTicker, logger *zap.Logger) (*backend, error) {
	if len(o.EtcdServers) > 0 {
		return connect(o, transformer, metrics, clock, logger)
	}
	embedded, err := etcd.StartEmbedded(ctx, filepath.Join(o.DataDir, "etcd"), logger)
	if err != nil {
		return nil, err
	}
	b := newBackend(etcd.Options{
		Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: embedded.Revision,
		Transformer: transformer, Clock: clock, Logger: logger,
	}, o, metrics)
	b.failed, b.metrics, b.close = embedded.Err(), prometheus.GathererFunc(etcd.Metrics), embedded.Stop
	return b, nil
}

func newBackend(o etcd.Options, flags *config.Options, metrics *measured.Metrics) *backend {
	return &backend{
		metrics:      prometheus.Gatherers{},
		storage:      measured.Store{Interface: etcd.NewStore(o), Metrics: metrics, Clock: o.Clock},
		checkTimeout: flags.EtcdCheckTimeout,
		compactor:    &etcd.Compactor{Client: o.Client, Interval: flags.Operation.CompactionInterval, Clock: o.Clock, Logger: o.Logger},
	}
}

func connect(o *config.Options, transformer etcd.Transformer, metrics *measured.Metrics, clock clock.WithTicker, logger *zap.Logger) (*backend, error) {
	security, err := etcdTLS(o)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: o.EtcdServers, TLS: security,
		DialTimeout: etcdDialTimeout, DialKeepAliveTime: etcdKeepAlive, DialKeepAliveTimeout: etcdKeepAlive / 3,
		MaxCallRecvMsgSize: maxEtcdMessage, MaxCallSendMsgSize: maxEtcdMessage,
		DialOptions: []grpc.DialOption{
			grpc.WithUserAgent("kctl-apiserver"),
			// Said once. Left to itself, gRPC measures the connection for as long as it
			// lives, by a ping for nearly every answer.
			grpc.WithStaticStreamWindowSize(etcdStreamWindow), grpc.WithStaticConnWindowSize(etcdConnWindow),
		},
		Logger: logger.Named("etcd-client").WithOptions(zap.IncreaseLevel(zapcore.WarnLevel)),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %v: %w", o.EtcdServers, err)
	}
	b := newBackend(etcd.Options{Client: client, Transformer: transformer, Clock: clock, Logger: logger}, o, metrics)
	b.close = func() error {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("close etcd client: %w", err)
		}
		return nil
	}
	return b, nil
}

func etcdTLS(o *config.Options) (*tls.Config, error) {
	if o.EtcdCAFile == "" && o.EtcdCertFile == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.EtcdCAFile != "" {
		data, err := os.ReadFile(o.EtcdCAFile)
		if err != nil {
			return nil, fmt.Errorf("etcd certificate authority: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("etcd certificate authority %s: no PEM certificate in it", o.EtcdCAFile)
		}
	}
	if o.EtcdCertFile != "" {
		reloader, err := pki.NewReloader(o.EtcdCertFile, o.EtcdKeyFile, clock.RealClock{})
		if err != nil {
			return nil, fmt.Errorf("etcd client %w", err)
		}
		c.GetClientCertificate = reloader.GetClientCertificate
	}
	return c, nil
}

// check asks etcd for something, as the health checks do.
func (b *backend) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.checkTimeout)
	defer cancel()
	if _, err := b.storage.Get(ctx, "health"); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("etcd does not answer: %w", err)
	}
	return nil
}
