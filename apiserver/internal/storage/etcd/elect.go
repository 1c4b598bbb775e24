package etcd

import (
	"context"
	"expvar"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
)

// electing is held by the one server in this process that is starting: etcd
// publishes raft's status of one server only.
var electing sync.Mutex

// electionPollInterval is how often raft is asked whether it has applied what it stored.
const electionPollInterval = time.Millisecond

// elect makes the only member elect itself once it has applied what it stored, with
// the message by which a leader hands over (raft's TimeoutNow): otherwise it would
// wait for ticks, which are far apart. It must not be told earlier: raft looks
// through everything that it does not know to be applied, some of which etcd may
// have dropped already, and panics.
func (e *Embedded) elect(ctx context.Context) {
	self := uint64(e.server.MemberID())
	for e.server.Leader() == types.ID(raft.None) && ctx.Err() == nil {
		if status := raftStatus(); status.GetCommit() > 0 && status.Applied >= status.GetCommit() {
			// If this fails, the ticks do it.
			_ = e.server.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &self, To: &self})
		}
		_ = backoff.Sleep(ctx, clock.RealClock{}, electionPollInterval)
	}
}

// raftStatus is the status of the server started last, as etcd publishes it for
// debuggers; empty if there is none.
func raftStatus() raft.Status {
	published, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return raft.Status{}
	}
	status, _ := published.Value().(raft.Status)
	return status
}
