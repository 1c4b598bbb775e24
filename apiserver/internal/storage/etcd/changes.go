package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kctl/apiserver/internal/storage"
)

// maxHistories bounds who reads changes of the past at once: each costs etcd as
// much as everything that happened meanwhile.
const maxHistories = 4

// Changes implements storage.Reader. It watches every key there is: one of them was
// written at until, and when that comes nothing before it is missing, so that etcd
// need not be asked for its word that a quiet prefix has nothing more.
func (s *Store) Changes(ctx context.Context, prefix string, after, until int64) (iter.Seq2[storage.Change, error], error) {
	select {
	case s.histories <- struct{}{}:
	default:
		return nil, failed("changes", prefix, fmt.Errorf("%w: %d others read changes of the past", storage.ErrUnavailable, maxHistories))
	}
	w, cancel, err := s.open(ctx, prefix)
	if err != nil {
		<-s.histories
		return nil, err
	}
	context.AfterFunc(w.ctx, func() { <-s.histories }) // also where nobody ranges over them
	w.everything, w.before = true, true
	answer, err := s.firstChanges(w, after, cancel)
	if err != nil {
		cancel()
		return nil, err
	}
	return func(yield func(storage.Change, error) bool) {
		defer cancel()
		for w.hand(answer.Events, until, yield) {
			if answer, err = w.next(); err != nil {
				yield(storage.Change{}, err)
				return
			}
		}
	}, nil
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
		if answer, err := w.next(); err != nil || len(answer.Events) > 0 {
			return answer, err
		}
	}
}

// hand gives yield the changes under the prefix; false where they were the last
// ones, or nobody wants more.
func (w *watch) hand(events []*mvccpb.Event, until int64, yield func(storage.Change, error) bool) bool {
	for _, e := range events {
		if e.Kv.ModRevision > until {
			return false
		}
		if !bytes.HasPrefix(e.Kv.Key, []byte(w.prefix)) {
			continue
		}
		change, err := w.change(e)
		if err != nil && !errors.Is(err, errSealed) && !errors.Is(err, storage.ErrCompacted) {
			continue // as if it were not there
		}
		if !yield(change, err) || err != nil {
			return false
		}
	}
	return len(events) == 0 || events[len(events)-1].Kv.ModRevision < until
}

func (w *watch) change(e *mvccpb.Event) (change storage.Change, err error) {
	if change.Event, err = w.event(e); err != nil || change.Type == storage.Added {
		return change, err
	}
	if e.PrevKv == nil {
		return change, failed("changes", string(e.Kv.Key), storage.ErrCompacted)
	}
	change.Before, err = w.object(e.PrevKv)
	return change, err
}
