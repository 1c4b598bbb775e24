package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"kctl/apiserver/internal/storage"
)

// Embedded is an etcd of one member in this process. It listens on nothing but
// a unix socket in its data directory, for etcdctl; the server itself calls it
// directly.
type Embedded struct {
	server *etcdserver.EtcdServer
	client *clientv3.Client
	socket *grpc.Server // nil without a Socket
	ended  chan error
	Socket string // "" if the path is too long for a socket
	stop   sync.Once
	// silent is set once etcd is told to stop.
	silent atomic.Bool
}

// Sizes that keep a single machine's store small: the raft log in memory holds
// at most snapshotEntries+catchUpEntries writes.
const (
	quotaBytes       = 8 << 30
	snapshotEntries  = 2000
	catchUpEntries   = 200
	maxRequestBytes  = 1.5 * 1024 * 1024 // etcd's default: what is stored here must fit into another etcd
	maxSocketPath    = 100               // of the kernel's 108
	embeddedDeadline = 30 * time.Second
)

// StartEmbedded starts an etcd on dir, which it creates if necessary, and
// returns when it answers.
func StartEmbedded(ctx context.Context, dir string, logger *zap.Logger) (*Embedded, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded etcd: data directory: %w", err)
	}
	if err := checkFiles(dir); err != nil {
		return nil, err
	}
	electing.Lock()
	defer electing.Unlock()
	e := &Embedded{ended: make(chan error, 1)}
	listener, err := e.listen(dir)
	if err != nil {
		return nil, err
	}
	e.server, err = newServer(e.config(dir, logger))
	if err != nil {
		return nil, errors.Join(startError(dir, err), closeListener(listener))
	}
	e.server.Start()
	e.serve(listener)
	ctx, cancel := context.WithTimeout(ctx, embeddedDeadline)
	defer cancel()
	go e.elect(ctx)
	select {
	case <-e.server.ReadyNotify():
	case <-e.server.StopNotify():
		e.close()
		return nil, fmt.Errorf("embedded etcd on %s ended while it started", dir)
	case <-ctx.Done():
		e.close()
		return nil, fmt.Errorf(
			"embedded etcd on %s is not ready: %w (if its log is shorter than its database, it waits forever: restore the last "+
				"backup, see docs/operations.md)", dir, ctx.Err())
	}
	e.client = v3client.New(e.server)
	return e, nil
}

// newServer returns etcd's server, and its panics as errors: it panics if there is
// no room for its log.
func newServer(c config.ServerConfig) (server *etcdserver.EtcdServer, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("etcd: %v", why)
		}
	}()
	return etcdserver.NewServer(c)
}

// listen opens the socket for etcdctl; it returns nil if the path is too long for one.
func (e *Embedded) listen(dir string) (net.Listener, error) {
	socket := filepath.Join(dir, "etcd.sock")
	if len(socket) > maxSocketPath {
		return nil, nil
	}
	// A server that was killed leaves it behind.
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("embedded etcd: old socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("embedded etcd: socket: %w", err)
	}
	e.Socket = socket
	return listener, nil
}

// serve answers etcdctl, and reports if the server stops by itself.
func (e *Embedded) serve(listener net.Listener) {
	go func() {
		<-e.server.StopNotify()
		if !e.silent.Load() {
			e.ended <- errors.New("it ended unexpectedly")
		}
	}()
	if listener == nil {
		return
	}
	e.socket = v3rpc.Server(e.server, nil, nil)
	go func() {
		// A failure here affects etcdctl, not the server.
		_ = e.socket.Serve(listener)
	}()
}

func closeListener(listener net.Listener) error {
	if listener == nil {
		return nil
	}
	return listener.Close()
}

// config has etcd's own defaults, except for the sizes above. It is built here and
// not by etcd's package embed, because that brings a gateway, tracing and
// templates along: a seventh of the program (docs/decisions/0011-small-binary.md).
func (e *Embedded) config(dir string, logger *zap.Logger) config.ServerConfig {
	const name = "kctl"
	logger = quiet(logger.Named("etcd"), expectedWarnings, &e.silent)
	// The addresses are names only: nothing listens on them.
	peers := types.URLs{{Scheme: "http", Host: "localhost:2380"}}
	clients := types.URLs{{Scheme: "http", Host: "localhost:2379"}}
	if e.Socket != "" {
		clients = types.URLs{{Scheme: "unix", Path: e.Socket}}
	}
	return config.ServerConfig{
		Name: name, DataDir: dir,
		PeerURLs: peers, ClientURLs: clients,
		InitialPeerURLsMap: types.URLsMap{name: peers}, InitialClusterToken: "etcd-cluster", NewCluster: true,
		// The only member is told to elect itself, and none waits for its heartbeat.
		// Ticks cost CPU time, most of what an idle node uses
		// (docs/decisions/0014-the-embedded-etcd-rests.md).
		TickMs: 500, ElectionTicks: 2, InitialElectionTickAdvance: true, PreVote: true, StrictReconfigCheck: true,
		SnapshotCount: snapshotEntries, SnapshotCatchUpEntries: catchUpEntries, MaxSnapFiles: 5, MaxWALFiles: 5,
		// What is not in the database yet is in the log.
		BackendBatchInterval: 500 * time.Millisecond,
		QuotaBackendBytes:    quotaBytes, BackendFreelistType: bbolt.FreelistMapType,
		MaxRequestBytes: maxRequestBytes, MaxTxnOps: 128, MaxConcurrentStreams: math.MaxUint32, MaxLearners: 1,
		WarningApplyDuration: 100 * time.Millisecond, WarningUnaryRequestDuration: 300 * time.Millisecond,
		AuthToken: "simple", BcryptCost: 10, TokenTTL: 300,
		CompactHashCheckTime: time.Minute, DowngradeCheckTime: 5 * time.Second, V2Deprecation: config.V2DeprDefault,
		ServerFeatureGate: features.NewDefaultServerFeatureGate(name, logger),
		Metrics:           "basic", Logger: logger,
	}
}

// Client calls the server without a network in between. It ends with Stop.
func (e *Embedded) Client() *clientv3.Client { return e.client }

// Direct are calls that bypass the client.
func (e *Embedded) Direct() *Direct {
	return &Direct{
		KV:      adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(e.server)),
		Watches: adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(e.server)),
	}
}

// Revision is the server's current revision. The only member answers a write
// after it has applied it, so this is never behind an answered write.
func (e *Embedded) Revision() (int64, error) {
	select {
	case <-e.server.StoppingNotify():
		return 0, fmt.Errorf("%w: embedded etcd is stopping", storage.ErrUnavailable)
	default:
		return e.server.KV().Rev(), nil
	}
}

// Err delivers an error if the server stops by itself.
func (e *Embedded) Err() <-chan error { return e.ended }

// Metrics are the metrics of the embedded etcd, under etcd's names.
func Metrics() ([]*dto.MetricFamily, error) {
	all, err := prometheus.DefaultGatherer.Gather()
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "etcd_") }), err
}

// Stop stops the server and returns when everything is on disk. Calls after the
// first do nothing.
func (e *Embedded) Stop() error {
	var err error
	e.stop.Do(func() {
		err = e.client.Close()
		e.close()
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close client of embedded etcd: %w", err)
	}
	return nil
}

// close stops the server, after its socket's requests.
func (e *Embedded) close() {
	e.silent.Store(true)
	if e.socket != nil {
		e.socket.Stop()
	}
	e.server.Stop()
}
