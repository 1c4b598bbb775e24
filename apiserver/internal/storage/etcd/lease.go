package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"
)

// A lease costs etcd memory and a place in a heap, so objects with the same
// time to live share one for a while; they live at most leaseMaxSlack longer than
// requested.
const (
	leaseMaxSlack   = time.Minute
	leaseMaxObjects = 1000
)

// leases hands out leases, by time to live.
type leases struct {
	client clientv3.Lease
	clock  clock.PassiveClock

	mu    sync.Mutex
	byTTL map[int64]*lease // by time to live in seconds
}

type lease struct {
	id      clientv3.LeaseID
	until   time.Time // no new objects from then on
	objects int
}

func newLeases(client clientv3.Lease, clock clock.PassiveClock) *leases {
	return &leases{client: client, clock: clock, byTTL: map[int64]*lease{}}
}

// of returns the lease with which a key expires after ttl; 0, for none, if it stays.
func (l *leases) of(ctx context.Context, ttl time.Duration) (int64, error) {
	if ttl <= 0 {
		return 0, nil
	}
	id, err := l.get(ctx, ttl)
	if err != nil {
		return 0, fmt.Errorf("lease of %s: %w", ttl, err)
	}
	return int64(id), nil
}

func (l *leases) get(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	seconds := int64((ttl + time.Second - 1) / time.Second)
	slack := slackOf(seconds)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if held := l.byTTL[seconds]; held != nil && held.objects < leaseMaxObjects && now.Before(held.until) {
		held.objects++
		return held.id, nil
	}
	granted, err := l.client.Grant(ctx, seconds+slack)
	if err != nil {
		return 0, err
	}
	l.forget(now)
	l.byTTL[seconds] = &lease{id: granted.ID, until: now.Add(time.Duration(slack) * time.Second), objects: 1}
	return granted.ID, nil
}

// slackOf is for how many seconds a lease is shared: a twentieth of its time,
// but at least one.
func slackOf(seconds int64) int64 {
	return min(int64(leaseMaxSlack/time.Second), max(1, seconds/20))
}

// forget drops leases that take no more objects, which bounds the map.
func (l *leases) forget(now time.Time) {
	for seconds, held := range l.byTTL {
		if !now.Before(held.until) {
			delete(l.byTTL, seconds)
		}
	}
}
