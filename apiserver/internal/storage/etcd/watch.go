package etcd

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	"kctl/apiserver/internal/storage"
)

// errWatchEnded is why a watch ended whose context did.
var errWatchEnded = errors.New("watch ended")

// watch is one running watch on a prefix.
type watch struct {
	client *clientv3.Client
	prefix string
	ctx    context.Context // names the stream to etcd
	events chan []storage.Event
	err    error // set before events is closed
	logger *zap.Logger

	// Of an etcd whose word on progress cannot be taken; nil else.
	own *ownProgress
}

// Watch implements storage.Reader.
func (s *Store) Watch(ctx context.Context, prefix string, revision int64) (storage.Watch, error) {
	trusted, err := s.progress.trusted(ctx)
	if err != nil {
		return nil, failed("watch", prefix, err)
	}
	// etcd's client runs watches of equal metadata over one stream, and answers
	// RequestProgress only when every watch of the stream has caught up. A
	// stream to each prefix keeps one busy resource from holding up the rest.
	ctx = metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx), "kctl-watch", prefix)
	w := &watch{
		client: s.client,
		prefix: prefix,
		ctx:    ctx,
		events: make(chan []storage.Event, 16),
		logger: s.logger,
	}
	options := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(revision + 1)}
	if trusted {
		options = append(options, clientv3.WithProgressNotify())
	} else if w.own, err = s.newOwnProgress(ctx, prefix, revision); err != nil {
		return nil, failed("watch", prefix, err)
	}
	changes := s.client.Watch(ctx, prefix, options...)
	go w.run(changes)
	return w, nil
}

func (w *watch) Events() <-chan []storage.Event { return w.events }

func (w *watch) Err() error { return w.err }

// RequestProgress implements storage.Watch.
func (w *watch) RequestProgress(ctx context.Context) error {
	if w.own != nil {
		return w.findProgress(ctx)
	}
	return w.client.RequestProgress(w.ctx)
}

// run turns etcd's answers into events until the watch's context ends or etcd
// ends the watch.
func (w *watch) run(changes clientv3.WatchChan) {
	w.err = errWatchEnded
	defer w.close()
	for answer := range changes {
		if err := answer.Err(); err != nil {
			w.err = failed("watch", "", err)
			return
		}
		if !w.deliver(answer) {
			return
		}
	}
}

// deliver hands an answer on; false where the watch is at its end.
func (w *watch) deliver(answer clientv3.WatchResponse) bool {
	events := w.convert(answer)
	if w.own != nil {
		w.own.mu.Lock()
		defer w.own.mu.Unlock()
		w.own.count(answer.Events)
	}
	return len(events) == 0 || w.send(events)
}

func (w *watch) send(events []storage.Event) bool {
	select {
	case w.events <- events:
		return true
	case <-w.ctx.Done():
		return false
	}
}

func (w *watch) close() {
	if w.own != nil {
		w.own.mu.Lock()
		defer w.own.mu.Unlock()
		w.own.ended = true
	}
	close(w.events)
}

func (w *watch) convert(answer clientv3.WatchResponse) []storage.Event {
	if answer.IsProgressNotify() {
		return []storage.Event{{Type: storage.Progress, Object: storage.Object{Revision: answer.Header.Revision}}}
	}
	events := make([]storage.Event, 0, len(answer.Events))
	for _, e := range answer.Events {
		if e.Type == clientv3.EventTypeDelete {
			events = append(events, storage.Event{
				Type:   storage.Deleted,
				Object: storage.Object{Key: string(e.Kv.Key), Revision: e.Kv.ModRevision},
			})
			continue
		}
		object, err := decode(e.Kv)
		if err != nil {
			w.logger.Error("stored object cannot be read", zap.ByteString("key", e.Kv.Key), zap.Error(err))
			continue
		}
		event := storage.Event{Type: storage.Modified, Object: object}
		if e.IsCreate() {
			event.Type = storage.Added
		}
		events = append(events, event)
	}
	return events
}
