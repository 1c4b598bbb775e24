package etcd

import (
	"bytes"
	"context"
	"errors"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kctl/apiserver/internal/storage"
)

// errWatchEnded is why a watch ended whose context did.
var errWatchEnded = errors.New("watch ended")

// watch is one running watch on a prefix. It speaks to etcd over a stream of its
// own, without etcd's client between: that shares streams among watches, and hands
// each event through three goroutines to do so. What it does when a stream breaks,
// the feed does that reads from here.
type watch struct {
	stream      pb.Watch_WatchClient
	transformer Transformer
	prefix      string
	ctx         context.Context // ends the stream
	events      chan []storage.Event
	err         error // set before events is closed
	logger      *zap.Logger

	// everything is watched, of an etcd whose word on progress cannot be taken.
	everything bool

	sending sync.Mutex // of requests
}

// Watch implements storage.Reader.
func (s *Store) Watch(ctx context.Context, prefix string, revision int64) (storage.Watch, error) {
	trusted, err := s.progress.trusted(ctx)
	if err != nil {
		return nil, failed("watch", prefix, err)
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	stream, err := s.direct.Watches.Watch(ctx, append(anySize, grpc.WaitForReady(true))...)
	if err != nil {
		cancel()
		return nil, failed("watch", prefix, clientv3.ContextError(ctx, err))
	}
	w := &watch{
		stream:      stream,
		transformer: s.transformer,
		prefix:      prefix,
		ctx:         ctx,
		events:      make(chan []storage.Event, 16),
		logger:      s.logger,

		everything: !trusted,
	}
	if err := w.begin(revision); err != nil {
		cancel()
		return nil, failed("watch", prefix, clientv3.ContextError(ctx, err))
	}
	go func() {
		defer cancel()
		w.run()
	}()
	return w, nil
}

func (w *watch) begin(revision int64) error {
	// In fragments: what a watch has to catch up with may be more than a
	// message holds.
	create := &pb.WatchCreateRequest{StartRevision: revision + 1, Fragment: true}
	if w.everything {
		create.Key, create.RangeEnd = []byte{0}, []byte{0}
	} else {
		create.Key, create.RangeEnd = []byte(w.prefix), []byte(clientv3.GetPrefixRangeEnd(w.prefix))
		create.ProgressNotify = true
	}
	return w.request(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}})
}

func (w *watch) request(r *pb.WatchRequest) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	return w.stream.Send(r)
}

func (w *watch) Events() <-chan []storage.Event { return w.events }

func (w *watch) Err() error { return w.err }

// RequestProgress implements storage.Watch.
func (w *watch) RequestProgress(context.Context) error {
	if w.everything {
		return nil // comes by itself
	}
	return w.request(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// run turns etcd's answers into events until the watch's context ends or etcd
// ends the watch.
func (w *watch) run() {
	defer close(w.events)
	var fragments []*mvccpb.Event // of an answer that is not complete yet
	for {
		answer, err := w.stream.Recv()
		if w.ctx.Err() != nil {
			w.err = errWatchEnded
			return
		}
		if err == nil {
			err = refusal(answer)
		}
		if err != nil {
			w.err = failed("watch", w.prefix, clientv3.ContextError(w.ctx, err))
			return
		}
		if len(fragments) > 0 || answer.Fragment {
			fragments = append(fragments, answer.Events...)
			if answer.Fragment {
				continue
			}
			answer.Events, fragments = fragments, nil
		}
		if !w.deliver(answer) {
			return
		}
	}
}

// refusal is why etcd ends a watch; nil where it does not.
func refusal(answer *pb.WatchResponse) error {
	switch {
	case answer.CompactRevision != 0:
		return rpctypes.ErrCompacted
	case answer.Canceled && answer.CancelReason != "":
		return status.Error(codes.FailedPrecondition, answer.CancelReason)
	case answer.Canceled:
		return rpctypes.ErrFutureRev
	}
	return nil
}

// deliver hands an answer on; false where the watch is at its end.
func (w *watch) deliver(answer *pb.WatchResponse) bool {
	events, err := w.convert(answer)
	if err != nil {
		w.err = err
		return false
	}
	if len(events) == 0 {
		return true
	}
	select {
	case w.events <- events:
		return true
	case <-w.ctx.Done():
		w.err = errWatchEnded
		return false
	}
}

func (w *watch) convert(answer *pb.WatchResponse) ([]storage.Event, error) {
	if answer.Created {
		return nil, nil
	}
	if len(answer.Events) == 0 {
		return []storage.Event{progressTo(answer.Header.Revision)}, nil
	}
	events := make([]storage.Event, 0, len(answer.Events))
	for i, e := range answer.Events {
		if w.everything && !bytes.HasPrefix(e.Kv.Key, []byte(w.prefix)) {
			if i == len(answer.Events)-1 {
				events = append(events, progressTo(e.Kv.ModRevision))
			}
			continue
		}
		if e.Type == mvccpb.Event_DELETE {
			events = append(events, storage.Event{
				Type:   storage.Deleted,
				Object: storage.Object{Key: string(e.Kv.Key), Revision: e.Kv.ModRevision},
			})
			continue
		}
		value, _, err := asJSON(w.ctx, w.transformer, e.Kv)
		if errors.Is(err, errSealed) {
			return nil, failed("watch", string(e.Kv.Key), err)
		}
		if err != nil {
			w.logger.Error("stored object cannot be read", zap.ByteString("key", e.Kv.Key), zap.Error(err))
			continue
		}
		event := storage.Event{Type: storage.Modified, Object: storage.Object{Key: string(e.Kv.Key), Value: value, Revision: e.Kv.ModRevision}}
		if e.Kv.CreateRevision == e.Kv.ModRevision {
			event.Type = storage.Added
		}
		events = append(events, event)
	}
	return events, nil
}

// progressTo says that everything up to revision has been delivered.
func progressTo(revision int64) storage.Event {
	return storage.Event{Type: storage.Progress, Object: storage.Object{Revision: revision}}
}
