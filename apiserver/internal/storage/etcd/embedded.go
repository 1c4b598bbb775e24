package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"kctl/apiserver/internal/storage"
)

// Embedded is an etcd of one member in this process. It listens on nothing but
// a unix socket in its data directory, for etcdctl; the server itself calls it
// directly.
type Embedded struct {
	server *embed.Etcd
	client *clientv3.Client
	Socket string // "" where the path is too long for a socket
	stop   sync.Once
	// silent is set once etcd ends because it is told to: it calls each closed
	// listener an error then.
	silent atomic.Bool
}

// Sizes that keep a store for one machine small: the raft log held in memory
// is at most snapshotEntries+catchUpEntries writes long.
const (
	quotaBytes       = 8 << 30
	snapshotEntries  = 2000
	catchUpEntries   = 200
	maxRequestBytes  = 8 << 20
	maxSocketPath    = 100 // of 108 that the kernel takes
	embeddedDeadline = 30 * time.Second
)

// StartEmbedded starts an etcd on dir, which it makes where it is not there,
// and returns when it answers.
func StartEmbedded(ctx context.Context, dir string, logger *zap.Logger) (*Embedded, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded etcd: data directory: %w", err)
	}
	if err := checkFiles(dir); err != nil {
		return nil, err
	}
	e := &Embedded{}
	config, err := e.config(dir, logger)
	if err != nil {
		return nil, err
	}
	e.server, err = embed.StartEtcd(config)
	if err != nil {
		return nil, startError(dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, embeddedDeadline)
	defer cancel()
	select {
	case <-e.server.Server.ReadyNotify():
	case err := <-e.server.Err():
		e.server.Close()
		return nil, fmt.Errorf("embedded etcd on %s: %w", dir, err)
	case <-ctx.Done():
		e.server.Close()
		return nil, fmt.Errorf("embedded etcd on %s is not ready: %w (where its log is shorter than its database knows, it waits for ever: restore the last backup, docs/operations.md)", dir, ctx.Err())
	}
	e.client = v3client.New(e.server.Server)
	return e, nil
}

func (e *Embedded) config(dir string, logger *zap.Logger) (*embed.Config, error) {
	config := embed.NewConfig()
	config.Name = "kctl"
	config.Dir = dir
	// The peer address is a name only: nobody listens on it.
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.Name + "=" + peer.String()
	config.ListenClientUrls = nil
	config.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	if socket := filepath.Join(dir, "etcd.sock"); len(socket) <= maxSocketPath {
		// Left behind by a server that was killed.
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("embedded etcd: old socket: %w", err)
		}
		client := url.URL{Scheme: "unix", Path: socket}
		config.ListenClientUrls = []url.URL{client}
		config.AdvertiseClientUrls = []url.URL{client}
		e.Socket = socket
	}
	// Nobody's network can delay a member that is alone, so it may elect itself
	// at once.
	config.TickMs, config.ElectionMs = 10, 100
	config.EnableGRPCGateway = false
	config.QuotaBackendBytes = quotaBytes
	config.SnapshotCount = snapshotEntries
	config.SnapshotCatchUpEntries = catchUpEntries
	config.MaxRequestBytes = maxRequestBytes
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(e.quiet(logger.Named("etcd")))
	return config, nil
}

// expectedWarnings are what etcd says of each member that is alone behind a
// unix socket.
var expectedWarnings = map[string]bool{
	"Running http and grpc server on single port. This is not recommended for production.": true,
	"simple token is not cryptographically signed":                                         true,
	// Of a new member that has not stored its first entry yet; it tries again.
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
}

// quiet lets through what etcd warns of, apart from what is as it should be.
func (e *Embedded) quiet(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.IncreaseLevel(zapcore.WarnLevel), zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return &quietCore{Core: core, silent: &e.silent}
	}))
}

type quietCore struct {
	zapcore.Core
	silent *atomic.Bool
}

func (c *quietCore) With(fields []zapcore.Field) zapcore.Core {
	return &quietCore{Core: c.Core.With(fields), silent: c.silent}
}

func (c *quietCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.silent.Load() || expectedWarnings[entry.Message] {
		return checked
	}
	return c.Core.Check(entry, checked)
}

// Client calls the server without a network between. It ends with Stop.
func (e *Embedded) Client() *clientv3.Client { return e.client }

// Revision is the server's current revision. A member that is alone answers a
// write only after it has applied it, so this is never behind a write that was
// answered.
func (e *Embedded) Revision() (int64, error) {
	select {
	case <-e.server.Server.StoppingNotify():
		return 0, fmt.Errorf("%w: embedded etcd is stopping", storage.ErrUnavailable)
	default:
		return e.server.Server.KV().Rev(), nil
	}
}

// Err delivers an error where the server ends by itself.
func (e *Embedded) Err() <-chan error { return e.server.Err() }

// Stop ends the server and returns when everything is on disk. Calls after the
// first do nothing.
func (e *Embedded) Stop() error {
	var err error
	e.stop.Do(func() {
		e.silent.Store(true)
		err = e.client.Close()
		e.server.Close()
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close client of embedded etcd: %w", err)
	}
	return nil
}
