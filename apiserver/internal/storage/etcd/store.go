package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
)

// Options are what a Store is built with.
type Options struct {
	Client *clientv3.Client
	// CurrentRevision answers storage.Reader.Revision without a request, where
	// the server runs in this process; nil asks the cluster.
	CurrentRevision func() (int64, error)
	// Transformer changes what is stored; nil stores values as they are.
	Transformer Transformer
	Clock       clock.PassiveClock
	Logger      *zap.Logger
}

// Store is a storage.Interface over an etcd cluster.
type Store struct {
	client      *clientv3.Client
	transformer Transformer
	leases      *leases
	revisions   *revisions
	progress    *progressSupport
	logger      *zap.Logger
}

var _ storage.Interface = (*Store)(nil)

// NewStore returns a store over o.Client, which the caller closes.
func NewStore(o Options) *Store {
	s := &Store{
		client:      o.Client,
		transformer: o.Transformer,
		leases:      newLeases(o.Client, o.Clock),
		progress: &progressSupport{
			client: o.Client,
			known:  o.CurrentRevision != nil,
		},
		logger: o.Logger,
	}
	if s.transformer == nil {
		s.transformer = asStored{}
	}
	current := s.askRevision
	if o.CurrentRevision != nil {
		current = func(context.Context) (int64, error) { return o.CurrentRevision() }
	}
	s.revisions = &revisions{ask: current}
	return s
}

// requestTimeout bounds every request: without it a client of an etcd that is
// away waits for as long as its caller would.
const requestTimeout = 10 * time.Second

// Create implements storage.Writer.
func (s *Store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options, err := s.leases.options(ctx, ttl)
	if err != nil {
		return storage.Object{}, failed("create", key, err)
	}
	stored, err := s.transformer.Seal(ctx, key, value)
	if err != nil {
		return storage.Object{}, failed("create", key, err)
	}
	answer, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(stored), options...)).
		Commit()
	if err != nil {
		return storage.Object{}, failed("create", key, err)
	}
	if !answer.Succeeded {
		return storage.Object{}, failed("create", key, storage.ErrExists)
	}
	return written("create", key, value, answer.Header.Revision)
}

// Update implements storage.Writer.
func (s *Store) Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (storage.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options, err := s.leases.options(ctx, ttl)
	if err != nil {
		return storage.Object{}, failed("update", key, err)
	}
	stored, err := s.transformer.Seal(ctx, key, value)
	if err != nil {
		return storage.Object{}, failed("update", key, err)
	}
	answer, err := s.guarded(ctx, key, revision, clientv3.OpPut(key, string(stored), options...))
	if err != nil {
		return storage.Object{}, failed("update", key, err)
	}
	if !answer.Succeeded {
		return s.refused(ctx, "update", key, answer)
	}
	return written("update", key, value, answer.Header.Revision)
}

// Delete implements storage.Writer.
func (s *Store) Delete(ctx context.Context, key string, revision int64) (storage.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := s.guarded(ctx, key, revision, clientv3.OpDelete(key))
	if err != nil {
		return storage.Object{}, failed("delete", key, err)
	}
	if !answer.Succeeded {
		return s.refused(ctx, "delete", key, answer)
	}
	return storage.Object{Key: key, Revision: answer.Header.Revision}, nil
}

// guarded runs op if key was last written at revision, and else reads the key.
func (s *Store) guarded(ctx context.Context, key string, revision int64, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(op).
		Else(clientv3.OpGet(key)).
		Commit()
}

// refused reads what a guarded transaction found instead.
func (s *Store) refused(ctx context.Context, op, key string, answer *clientv3.TxnResponse) (storage.Object, error) {
	found := answer.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 {
		return storage.Object{}, failed(op, key, storage.ErrNotFound)
	}
	object, err := decode(ctx, s.transformer, found[0])
	if err != nil {
		return storage.Object{}, failed(op, key, err)
	}
	return object, failed(op, key, storage.ErrConflict)
}

// failed says which request about which key an error is about, and gives it
// its kind.
func failed(op, key string, err error) error {
	return &storage.KeyError{Op: op, Key: key, Err: kind(err)}
}

// kind marks etcd's errors with the kinds of package storage.
func kind(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return fmt.Errorf("%w: %w", storage.ErrCompacted, err)
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%w: %w", storage.ErrFuture, err)
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: %w", storage.ErrTooLarge, err)
	case isUnavailable(err):
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	return err
}

// isUnavailable knows etcd without a leader or overloaded, a connection that
// broke, and a request that took longer than it may.
func isUnavailable(err error) bool {
	var fromServer rpctypes.EtcdError
	if errors.As(err, &fromServer) {
		return fromServer.Code() == codes.Unavailable
	}
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded
}
