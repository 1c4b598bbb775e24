package etcd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kctl/apiserver/internal/storage"
)

// etcd before 3.4.25 and 3.5.8 may say that a watch has come to a revision
// before it has sent the events up to there (etcd issue 15220). Believing it
// would make reads stale and lose events after a broken watch, so of such a
// server the watch finds out itself how far it is.

// progressSupport knows whether every member of the cluster tells progress
// rightly.
type progressSupport struct {
	client *clientv3.Client

	mu    sync.Mutex
	known bool // and it does
	old   bool // known, and it does not
}

func (p *progressSupport) trusted(ctx context.Context) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known || p.old {
		return p.known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, endpoint := range p.client.Endpoints() {
		status, err := p.client.Status(ctx, endpoint)
		if err != nil {
			return false, fmt.Errorf("version of etcd at %s: %w", endpoint, err)
		}
		if !progressRight(status.Version) {
			p.old = true
			return false, nil
		}
	}
	p.known = true
	return true, nil
}

// progressRight reports whether an etcd of this version tells progress only
// after the events. What cannot be read counts as old.
func progressRight(version string) bool {
	var n [3]int
	for i, part := range strings.SplitN(strings.SplitN(version, "-", 2)[0], ".", 3) {
		var err error
		if n[i], err = strconv.Atoi(part); err != nil {
			return false
		}
	}
	switch {
	case n[0] != 3:
		return n[0] > 3
	case n[1] == 4:
		return n[2] >= 25
	case n[1] == 5:
		return n[2] >= 8
	}
	return n[1] > 5
}

// ownProgress is what a watch needs to know to find its progress: up to where
// it has delivered, and how many keys there were then.
type ownProgress struct {
	mu       sync.Mutex // held while events are handed on, so that they stay in order
	revision int64
	keys     int64
	ended    bool
}

func (s *Store) newOwnProgress(ctx context.Context, prefix string, revision int64) (*ownProgress, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithRev(revision))
	if err != nil {
		return nil, fmt.Errorf("count keys: %w", err)
	}
	return &ownProgress{revision: revision, keys: answer.Count}, nil
}

func (o *ownProgress) count(events []*clientv3.Event) {
	for _, e := range events {
		switch {
		case e.IsCreate():
			o.keys++
		case e.Type == clientv3.EventTypeDelete:
			o.keys--
		}
		o.revision = e.Kv.ModRevision
	}
}

// findProgress reads the prefix as it is now. Where no key is younger than what
// was delivered, and none is missing, the state is that of the read, and the
// watch is as far. Else there are events on their way. An object that came and
// went in between leaves no trace: its two events come after the progress.
func (w *watch) findProgress(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	w.own.mu.Lock()
	revision, keys := w.own.revision, w.own.keys
	w.own.mu.Unlock()
	answer, err := w.client.Get(ctx, w.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1), clientv3.WithMinModRev(revision+1))
	if err != nil {
		return failed("progress of", w.prefix, err)
	}
	if len(answer.Kvs) > 0 || answer.Count != keys {
		return nil
	}
	w.own.mu.Lock()
	defer w.own.mu.Unlock()
	if w.own.ended || w.own.revision != revision {
		return nil
	}
	w.own.revision = max(revision, answer.Header.Revision)
	w.send([]storage.Event{{Type: storage.Progress, Object: storage.Object{Revision: w.own.revision}}})
	return nil
}
