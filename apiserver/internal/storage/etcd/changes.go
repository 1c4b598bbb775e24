package etcd

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kctl/apiserver/internal/storage"
)

// Few read changes of the past at once, since each costs etcd as much as
// everything that happened meanwhile; who comes then waits for a turn, but not for
// long. Whoever takes the changes slowly must not keep the others from theirs.
const (
	maxHistories = 4
	historyWait  = 2 * time.Second
	historyTime  = time.Minute
)

// Changes implements storage.Reader. It watches every key there is: one of them was
// written at until, and when that comes nothing before it is missing, so that etcd
// need not be asked for its word that a quiet prefix has nothing more.
func (s *Store) Changes(ctx context.Context, prefix string, after, until int64) (iter.Seq2[storage.Change, error], error) {
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	end, err := s.takeTurn(ctx)
	if err != nil {
		cancel()
		return nil, failed("changes", prefix, err)
	}
	context.AfterFunc(ctx, end) // also where nobody ranges over them
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
	return func(yield func(storage.Change, error) bool) {
		defer end() // before who ranges over them goes on
		defer cancel()
		for w.hand(answer, until, yield) {
			if answer, err = w.receive(); err != nil {
				if ctx.Err() != nil {
					err = failed("changes", prefix, fmt.Errorf("%w: %w", storage.ErrUnavailable, ctx.Err()))
				}
				yield(storage.Change{}, err)
				return
			}
		}
	}, nil
}

// takeTurn waits for a turn, which ends when end is called for the first time.
func (s *Store) takeTurn(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	select {
	case s.histories <- struct{}{}:
		return sync.OnceFunc(func() { <-s.histories }), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %d others read changes of the past", storage.ErrUnavailable, maxHistories)
	}
}

// firstChanges waits for the first answer with something in it, for as long as a
// request may take. That etcd still has the revision before is asked for beforehand:
// it lets watches begin where it has compacted, and some versions have dropped a
// deletion there.
func (s *Store) firstChanges(w *watch, after int64, cancel context.CancelFunc) (*pb.WatchResponse, error) {
	defer time.AfterFunc(requestTimeout, cancel).Stop()
	if _, err := s.client.Get(w.ctx, "\x00kctl", clientv3.WithKeysOnly(), clientv3.WithRev(after)); err != nil {
		return nil, failed("changes", w.prefix, err)
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

// hand gives yield the changes under the prefix; false where they were the last
// ones, or nobody wants more. An answer may be a fragment: what is read of the past
// can be large.
func (w *watch) hand(answer *pb.WatchResponse, until int64, yield func(storage.Change, error) bool) bool {
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

// change is what etcd says happened. A changed object that can't be read as it was
// before, because its key is retired or it was broken then, is as good as new.
func (w *watch) change(e *mvccpb.Event) (change storage.Change, err error) {
	change.Event = w.event(e)
	if err := change.Object.Unreadable; err != nil || change.Type == storage.Added {
		return change, err
	}
	if e.PrevKv == nil {
		return change, failed("changes", string(e.Kv.Key), storage.ErrCompacted)
	}
	switch before := w.object(e.PrevKv); {
	case before.Unreadable == nil:
		change.Before = before
	case change.Type == storage.Deleted:
		return change, before.Unreadable
	}
	return change, nil
}
