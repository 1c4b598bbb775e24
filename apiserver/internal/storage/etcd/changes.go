package etcd

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kctl/apiserver/internal/storage"
)

// Changes implements storage.Reader. It watches all keys: one of them was written
// at until, and once that arrives nothing before it is missing, so that etcd need
// not be asked to confirm that a quiet prefix has no more changes.
func (s *Store) Changes(ctx context.Context, prefix string, after, until int64) (iter.Seq2[storage.Change, error], error) {
	ctx, cancel := context.WithTimeout(ctx, pastReadTimeout)
	reader, err := s.pastReads.acquire(ctx, cancel)
	if err != nil {
		cancel()
		return nil, wrapError("changes", prefix, err)
	}
	w, err := s.open(ctx, prefix)
	if err != nil {
		cancel()
		return nil, err
	}
	w.everything, w.before = true, true
	answer, err := s.firstChanges(w, after, cancel)
	if err != nil {
		cancel()
		return nil, err
	}
	reader.toClient() // which may never iterate
	return func(yield func(storage.Change, error) bool) {
		defer reader.end() // before the iteration goes on
		defer cancel()
		for w.yieldChanges(answer, until, yield) {
			reader.toEtcd()
			answer, err = w.receive()
			reader.toClient()
			if err != nil {
				if ctx.Err() != nil {
					err = wrapError("changes", prefix, fmt.Errorf("%w: %w", storage.ErrUnavailable, ctx.Err()))
				}
				yield(storage.Change{}, err)
				return
			}
		}
	}, nil
}

// firstChanges waits for the first answer that is not empty, as long as a request
// may take. Before that it asks whether etcd still has the preceding revision: etcd
// lets watches begin at a compacted revision, and some versions drop a deletion
// there.
func (s *Store) firstChanges(w *watch, after int64, cancel context.CancelFunc) (*pb.WatchResponse, error) {
	defer time.AfterFunc(requestTimeout, cancel).Stop()
	if _, err := s.client.Get(w.ctx, missingKey, clientv3.WithKeysOnly(), clientv3.WithRev(after)); err != nil {
		return nil, wrapError("changes", w.prefix, err)
	}
	if err := w.begin(after); err != nil {
		return nil, err
	}
	for {
		if answer, err := w.receive(); err != nil || len(answer.Events) > 0 {
			return answer, err
		}
	}
}

// yieldChanges passes the changes under the prefix to yield; it returns false after the
// last one, or if no more are wanted. An answer may be a fragment, since it can be
// large.
func (w *watch) yieldChanges(answer *pb.WatchResponse, until int64, yield func(storage.Change, error) bool) bool {
	last := int64(0)
	for _, e := range answer.Events {
		if last = e.Kv.ModRevision; last > until {
			return false
		}
		if !bytes.HasPrefix(e.Kv.Key, []byte(w.prefix)) {
			continue
		}
		change, err := w.change(e)
		if !yield(change, err) || err != nil {
			return false
		}
	}
	return last < until || answer.Fragment
}

// change translates etcd's event. A changed object whose previous state can't be
// read, because its encryption key is retired or it was corrupt then, counts as
// new.
func (w *watch) change(e *mvccpb.Event) (change storage.Change, err error) {
	change.Event = w.event(e)
	if err := change.Object.Unreadable; err != nil || change.Type == storage.Added {
		return change, err
	}
	if e.PrevKv == nil {
		return change, wrapError("changes", string(e.Kv.Key), storage.ErrCompacted)
	}
	switch before := w.object(e.PrevKv); {
	case before.Unreadable == nil:
		change.Before = before
	case change.Type == storage.Deleted:
		return change, before.Unreadable
	}
	return change, nil
}
