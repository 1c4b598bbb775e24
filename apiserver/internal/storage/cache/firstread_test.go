package cache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/eventually"
)

// slowStore lists when it is let.
type slowStore struct {
	storage.Interface
	let chan struct{}
}

func (s slowStore) List(ctx context.Context, prefix, after string, limit, revision int64) ([]storage.Object, int64, int64, error) {
	select {
	case <-s.let:
		return s.Interface.List(ctx, prefix, after, limit, revision)
	case <-ctx.Done():
		return nil, 0, 0, ctx.Err()
	}
}

// TestReadersWaitForTheFirstRead: it may take long, and a client that comes right after the
// start is not to be sent away because of that, unless it takes very long.
func TestReadersWaitForTheFirstRead(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	slow := slowStore{etcdtest.Start(t), make(chan struct{})}
	c := cache.New(cache.Options{
		Storage: slow, Prefix: prefix, Namespaced: true, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, Clock: clock, Logger: zap.NewNop(),
	})
	background(t, c.Run)
	wait := func() chan error {
		done := make(chan error, 1)
		go func() { done <- c.WaitReady(t.Context()) }()
		eventually.Holds(t, "the reader waits for the clock", clock.HasWaiters)
		return done
	}
	first := wait()
	clock.Step(time.Minute)
	if err := <-first; !errors.Is(err, cache.ErrNotReady) {
		t.Errorf("after a minute: %v", err)
	}
	second := wait()
	clock.Step(20 * time.Second)
	select {
	case err := <-second:
		t.Fatalf("after 20 seconds: %v", err)
	default:
	}
	close(slow.let)
	if err := <-second; err != nil {
		t.Errorf("when it was read: %v", err)
	}
}

// TestReadersDoNotWaitForACacheThatHasEnded: a changed definition replaces the cache of its objects,
// perhaps before that was read. Its readers come back to find the other one.
func TestReadersDoNotWaitForACacheThatHasEnded(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	slow := slowStore{etcdtest.Start(t), make(chan struct{})}
	c := cache.New(cache.Options{
		Storage: slow, Prefix: prefix, Namespaced: true, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, Clock: clock, Logger: zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended, waited := make(chan error, 1), make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	go func() { waited <- c.WaitReady(t.Context()) }()
	eventually.Holds(t, "the reader waits for the clock", clock.HasWaiters)
	cancel()
	<-ended
	if err := <-waited; !errors.Is(err, cache.ErrEnded) {
		t.Errorf("who waited: %v", err)
	}
	if err := c.WaitReady(t.Context()); !errors.Is(err, cache.ErrEnded) {
		t.Errorf("who comes later: %v", err)
	}
	if _, err := c.Watch(t.Context(), cache.WatchOptions{}); !errors.Is(err, cache.ErrEnded) {
		t.Errorf("a watch that would never see anything: %v", err)
	}
}
