package etcd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcd before 3.4.25 and 3.5.8 may report that a watch has reached a revision
// before it has sent the events up to there (etcd issue 15220). Trusting that
// would make reads stale and lose events after a broken watch. Up to 3.4.30 and
// 3.5.12, a new watch reports nothing before its first event (issue 17507), and
// reads would wait. On such servers the whole key space is watched: every revision
// brings an event then, and progress need not be requested. The versions are those
// from which kube-apiserver trusts progress.

// progressSupport knows whether all members of the cluster report progress
// correctly.
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

// progressRight reports whether an etcd of this version reports progress, and only
// after the events. An unreadable version counts as old.
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
		return n[2] >= 31
	case n[1] == 5:
		return n[2] >= 13
	}
	return n[1] > 5
}
