package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

// compactKey is the key by which upstream's API servers agree on who compacts,
// so that ours and theirs do not both do it.
const compactKey = "compact_rev_key"

// Compactor drops old revisions: at every interval, those up to the start of
// the interval before.
type Compactor struct {
	Client   *clientv3.Client
	Interval time.Duration
	Clock    clock.WithTicker
	Logger   *zap.Logger

	turn     int64 // the version of compactKey last seen
	revision int64 // the store's revision then
}

// Run compacts until ctx ends.
func (c *Compactor) Run(ctx context.Context) error {
	ticker := c.Clock.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
		compacted, err := c.Compact(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.Logger.Warn("old revisions not dropped, trying again", zap.Duration("after", c.Interval), zap.Error(err))
		case compacted > 0:
			c.Logger.Debug("old revisions dropped", zap.Int64("before", compacted))
		}
	}
}

// Compact takes this server's turn: the first server to update the key in an
// interval compacts to the revision at which the interval began; the others
// only learn the new one. It returns the revision compacted to, or 0 if another
// server did it or nothing was old enough.
func (c *Compactor) Compact(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	target := c.revision
	answer, err := c.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.Version(compactKey), "=", c.turn)).
		Then(clientv3.OpPut(compactKey, strconv.FormatInt(target, 10))).
		Else(clientv3.OpGet(compactKey)).
		Commit()
	if err != nil {
		return 0, fmt.Errorf("take the turn to compact: %w", err)
	}
	c.revision = answer.Header.Revision
	if !answer.Succeeded {
		c.turn = 0
		if found := answer.Responses[0].GetResponseRange().Kvs; len(found) > 0 {
			c.turn = found[0].Version
		}
		return 0, nil
	}
	c.turn++
	if target == 0 {
		return 0, nil
	}
	if _, err := c.Client.Compact(ctx, target); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return 0, fmt.Errorf("compact to revision %d: %w", target, err)
	}
	return target, nil
}
