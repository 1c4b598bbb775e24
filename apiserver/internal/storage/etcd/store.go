package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
)

// Options are what a Store is built from.
type Options struct {
	Client *clientv3.Client
	// Direct are calls that bypass the client; if nil, they go over the client's
	// connection.
	Direct *Direct
	// CurrentRevision answers storage.Reader.Revision without a request if the
	// server runs in this process; if nil, the cluster is asked.
	CurrentRevision func() (int64, error)
	// Transformer transforms stored values; nil stores them as they are.
	Transformer Transformer
	// Forms are kinds that etcd may hold in place of those that are stored; may be nil.
	Forms Forms
	Clock clock.WithTicker
}

// Direct are etcd's own calls: transactions without the copies that the client
// makes of keys, values and conditions, and watches without its goroutines.
type Direct struct {
	KV      pb.KVClient
	Watches pb.WatchClient
}

// Store is a storage.Interface over an etcd cluster.
type Store struct {
	client    *clientv3.Client
	direct    *Direct
	values    values
	leases    *leases
	revisions *revisions
	progress  *progressSupport
	pastReads *pastReads
}

var _ storage.Interface = (*Store)(nil)

// NewStore returns a store over o.Client, which the caller closes.
func NewStore(o Options) *Store {
	s := &Store{
		client: o.Client,
		direct: o.Direct,
		values: newValues(o.Transformer, o.Forms),
		leases: newLeases(o.Client, o.Clock),
		progress: &progressSupport{
			client: o.Client,
			known:  o.CurrentRevision != nil,
		},
		pastReads: newPastReads(o.Clock),
	}
	if s.direct == nil {
		s.direct = &Direct{KV: clientv3.RetryKVClient(o.Client), Watches: pb.NewWatchClient(o.Client.ActiveConnection())}
	}
	current := s.askRevision
	if o.CurrentRevision != nil {
		current = func(context.Context) (int64, error) { return o.CurrentRevision() }
	}
	s.revisions = &revisions{ask: current}
	return s
}

// requestTimeout bounds every request: without it, the client of an unreachable
// etcd waits for as long as its caller does.
const requestTimeout = 10 * time.Second

// Create implements storage.Writer.
func (s *Store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	put, err := s.put(ctx, key, value, ttl)
	if err != nil {
		return storage.Object{}, wrapError("create", key, err)
	}
	answer, err := s.guarded(ctx, key, 0, put)
	if err != nil {
		return storage.Object{}, wrapError("create", key, err)
	}
	if !answer.Succeeded {
		return storage.Object{}, wrapError("create", key, storage.ErrExists)
	}
	return written("create", key, value, answer.Header.Revision)
}

// Update implements storage.Writer.
func (s *Store) Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (storage.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	put, err := s.put(ctx, key, value, ttl)
	if err != nil {
		return storage.Object{}, wrapError("update", key, err)
	}
	answer, err := s.guarded(ctx, key, revision, put, read(key))
	if err != nil {
		return storage.Object{}, wrapError("update", key, err)
	}
	if !answer.Succeeded {
		return s.explainRefusal(ctx, "update", key, answer)
	}
	return written("update", key, value, answer.Header.Revision)
}

// Delete implements storage.Writer.
func (s *Store) Delete(ctx context.Context, key string, revision int64) (storage.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	remove := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}}
	answer, err := s.guarded(ctx, key, revision, remove, read(key))
	if err != nil {
		return storage.Object{}, wrapError("delete", key, err)
	}
	if !answer.Succeeded {
		return s.explainRefusal(ctx, "delete", key, answer)
	}
	return storage.Object{Key: key, Revision: answer.Header.Revision}, nil
}

// put is the request to write value, encoded and sealed, to key.
func (s *Store) put(ctx context.Context, key string, value []byte, ttl time.Duration) (*pb.RequestOp, error) {
	lease, err := s.leases.of(ctx, ttl)
	if err != nil {
		return nil, err
	}
	stored, err := s.values.Seal(ctx, key, s.values.encode(value))
	if err != nil {
		return nil, err
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: stored, Lease: lease}}}, nil
}

func read(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}
}

// guarded runs op if key was last written at revision (0 for never), and
// otherwise the alternative.
func (s *Store) guarded(ctx context.Context, key string, revision int64, op *pb.RequestOp,
	otherwise ...*pb.RequestOp) (*pb.TxnResponse, error) {
	unchanged := &pb.Compare{
		Key: []byte(key), Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: revision},
	}
	answer, err := s.direct.KV.Txn(ctx,
		&pb.TxnRequest{Compare: []*pb.Compare{unchanged}, Success: []*pb.RequestOp{op}, Failure: otherwise}, callOptions...)
	if err = clientv3.ContextError(ctx, err); errors.Is(err, rpctypes.ErrRequestTooLarge) || isTooLargeToReceive(err) {
		err = fmt.Errorf("%w: %d bytes as stored: %w", storage.ErrTooLarge, len(op.GetRequestPut().GetValue()), err)
	}
	return answer, err
}

// callOptions are those of direct calls, as the client has them for its own: they leave the limit on
// message sizes to etcd, and wait for a connection while an etcd restarts. Without one, nothing has
// been sent, and there is nothing to be uncertain about.
var callOptions = []grpc.CallOption{
	grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.WaitForReady(true),
}

// explainRefusal returns the error for what a guarded transaction found instead.
func (s *Store) explainRefusal(ctx context.Context, op, key string, answer *pb.TxnResponse) (storage.Object, error) {
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 {
		return storage.Object{}, wrapError(op, key, storage.ErrNotFound)
	}
	object, err := s.values.object(ctx, found[0])
	if err != nil {
		return storage.Object{}, wrapError(op, key, err)
	}
	return object, wrapError(op, key, storage.ErrConflict)
}

// wrapError adds to an error the request and the key, and its kind.
func wrapError(op, key string, err error) error {
	return &storage.KeyError{Op: op, Key: key, Err: classify(err)}
}

// classify wraps etcd's errors in the kinds of package storage.
func classify(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return fmt.Errorf("%w: %w", storage.ErrCompacted, err)
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%w: %w", storage.ErrFuture, err)
	case isUnavailable(err):
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	return err
}

// isTooLargeToReceive recognises a message that etcd's gRPC server refuses before etcd
// sees it. etcd's own errors with this code (no space, too many requests) are typed; those
// of a key service without quota have it too, and must not get here.
func isTooLargeToReceive(err error) bool {
	_, fromEtcd := errors.AsType[rpctypes.EtcdError](err)
	return !fromEtcd && status.Code(err) == codes.ResourceExhausted
}

// isUnavailable recognises an etcd without a leader or overloaded, a broken
// connection, and a request that timed out.
func isUnavailable(err error) bool {
	if fromServer, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return fromServer.Code() == codes.Unavailable
	}
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded
}
