package etcd

import (
	"bytes"
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
	client      *clientv3.Client
	transformer Transformer
	prefix      string
	ctx         context.Context // names the stream to etcd
	events      chan []storage.Event
	err         error // set before events is closed
	logger      *zap.Logger

	// everything is watched, of an etcd whose word on progress cannot be taken.
	everything bool
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
		client:      s.client,
		transformer: s.transformer,
		prefix:      prefix,
		ctx:         ctx,
		events:      make(chan []storage.Event, 16),
		logger:      s.logger,

		everything: !trusted,
	}
	go w.run(w.begin(revision))
	return w, nil
}

func (w *watch) begin(revision int64) clientv3.WatchChan {
	// In fragments: what a watch has to catch up with may be more than a
	// message holds.
	options := []clientv3.OpOption{clientv3.WithRev(revision + 1), clientv3.WithFragment()}
	if w.everything {
		return w.client.Watch(w.ctx, "\x00", append(options, clientv3.WithFromKey())...)
	}
	return w.client.Watch(w.ctx, w.prefix, append(options, clientv3.WithPrefix(), clientv3.WithProgressNotify())...)
}

func (w *watch) Events() <-chan []storage.Event { return w.events }

func (w *watch) Err() error { return w.err }

// RequestProgress implements storage.Watch.
func (w *watch) RequestProgress(context.Context) error {
	if w.everything {
		return nil // comes by itself
	}
	return w.client.RequestProgress(w.ctx)
}

// run turns etcd's answers into events until the watch's context ends or etcd
// ends the watch.
func (w *watch) run(changes clientv3.WatchChan) {
	w.err = errWatchEnded
	defer close(w.events)
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
	events, err := w.convert(answer)
	if err != nil {
		w.err = err
		return false
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

func (w *watch) convert(answer clientv3.WatchResponse) ([]storage.Event, error) {
	if answer.IsProgressNotify() {
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
		if e.Type == clientv3.EventTypeDelete {
			events = append(events, storage.Event{
				Type:   storage.Deleted,
				Object: storage.Object{Key: string(e.Kv.Key), Revision: e.Kv.ModRevision},
			})
			continue
		}
		object, err := decode(w.ctx, w.transformer, e.Kv)
		if errors.Is(err, errSealed) {
			return nil, failed("watch", string(e.Kv.Key), err)
		}
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
	return events, nil
}

// progressTo says that everything up to revision has been delivered.
func progressTo(revision int64) storage.Event {
	return storage.Event{Type: storage.Progress, Object: storage.Object{Revision: revision}}
}
