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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kctl/apiserver/internal/storage"
)

// errWatchEnded is why a watch ended whose context is done.
var errWatchEnded = errors.New("watch ended")

// watch is one running watch on a prefix. It has a stream of its own to etcd,
// without etcd's client in between: that shares streams among watches, and to do
// so passes each event through three goroutines. When a stream breaks, the
// reflector that reads from here resumes.
type watch struct {
	stream pb.Watch_WatchClient
	values values
	prefix string
	ctx    context.Context // ends the stream
	events chan []storage.Event
	err    error // set before events is closed

	// everything: all keys are watched, because this etcd's progress reports can't be
	// trusted.
	everything bool
	before     bool // tells what was there before, too

	sending sync.Mutex // of requests
}

// Watch implements storage.Reader.
func (s *Store) Watch(ctx context.Context, prefix string, revision int64) (storage.Watch, error) {
	trusted, err := s.progress.trusted(ctx)
	if err != nil {
		return nil, wrapError("watch", prefix, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := s.open(ctx, prefix)
	if err != nil {
		cancel()
		return nil, err
	}
	w.everything = !trusted
	if err := w.begin(revision); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer cancel()
		w.run()
	}()
	return w, nil
}

// open opens the stream of a watch, which ends with ctx.
func (s *Store) open(ctx context.Context, prefix string) (*watch, error) {
	ctx = clientv3.WithRequireLeader(ctx)
	stream, err := s.direct.Watches.Watch(ctx, callOptions...)
	if err != nil {
		return nil, wrapError("watch", prefix, clientv3.ContextError(ctx, err))
	}
	return &watch{
		stream: stream,
		values: s.values,
		prefix: prefix,
		ctx:    ctx,
		events: make(chan []storage.Event, 16),
	}, nil
}

func (w *watch) begin(revision int64) error {
	// In fragments: what a watch has to catch up on may exceed the size of a
	// message.
	create := &pb.WatchCreateRequest{StartRevision: revision + 1, Fragment: true, PrevKv: w.before}
	if w.everything {
		create.Key, create.RangeEnd = []byte{0}, []byte{0}
	} else {
		create.Key, create.RangeEnd = []byte(w.prefix), []byte(clientv3.GetPrefixRangeEnd(w.prefix))
		create.ProgressNotify = true
	}
	if err := w.request(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return wrapError("watch", w.prefix, clientv3.ContextError(w.ctx, err))
	}
	return nil
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
	for {
		answer, err := w.next()
		if err != nil {
			w.err = err
			return
		}
		if !w.deliver(answer) {
			return
		}
	}
}

// next returns etcd's next answer, assembled from its fragments.
func (w *watch) next() (*pb.WatchResponse, error) {
	var fragments []*mvccpb.Event
	for {
		answer, err := w.receive()
		if err != nil || fragments == nil && !answer.Fragment {
			return answer, err
		}
		fragments = append(fragments, answer.Events...)
		if !answer.Fragment {
			answer.Events = fragments
			return answer, nil
		}
	}
}

// receive returns etcd's next message, which may be a fragment of an answer.
func (w *watch) receive() (*pb.WatchResponse, error) {
	answer, err := w.stream.Recv()
	if w.ctx.Err() != nil {
		return nil, errWatchEnded
	}
	if err == nil {
		err = refusal(answer)
	}
	if err != nil {
		return nil, wrapError("watch", w.prefix, clientv3.ContextError(w.ctx, err))
	}
	return answer, nil
}

// refusal is why etcd ends a watch; nil if it does not.
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

// deliver hands an answer on; it returns false if the watch is over.
func (w *watch) deliver(answer *pb.WatchResponse) bool {
	events := w.convert(answer)
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

func (w *watch) convert(answer *pb.WatchResponse) []storage.Event {
	if answer.Created {
		return nil
	}
	if len(answer.Events) == 0 {
		return []storage.Event{progressTo(answer.Header.Revision)}
	}
	events := make([]storage.Event, 0, len(answer.Events))
	for i, e := range answer.Events {
		if w.everything && !bytes.HasPrefix(e.Kv.Key, []byte(w.prefix)) {
			if i == len(answer.Events)-1 {
				events = append(events, progressTo(e.Kv.ModRevision))
			}
			continue
		}
		events = append(events, w.event(e))
	}
	return events
}

// event translates etcd's event.
func (w *watch) event(e *mvccpb.Event) storage.Event {
	switch {
	case e.Type == mvccpb.Event_DELETE:
		return storage.Event{Type: storage.Deleted, Object: storage.Object{Key: string(e.Kv.Key), Revision: e.Kv.ModRevision}}
	case e.Kv.CreateRevision == e.Kv.ModRevision:
		return storage.Event{Type: storage.Added, Object: w.object(e.Kv)}
	}
	return storage.Event{Type: storage.Modified, Object: w.object(e.Kv)}
}

func (w *watch) object(kv *mvccpb.KeyValue) storage.Object {
	value, _, err := w.values.decode(w.ctx, kv)
	if err != nil {
		return unreadable("watch", kv, err)
	}
	return storage.Object{Key: string(kv.Key), Value: value, Revision: kv.ModRevision}
}

// progressTo is the event that everything up to revision has been delivered.
func progressTo(revision int64) storage.Event {
	return storage.Event{Type: storage.Progress, Object: storage.Object{Revision: revision}}
}
