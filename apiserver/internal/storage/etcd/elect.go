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

// electing is held by the server of this process that starts: etcd tells raft's
// status of one only.
var electing sync.Mutex

// electionPace is how often raft is asked whether it has taken up what it stored.
const electionPace = time.Millisecond

// elect has the member, which is alone, elect itself once it has taken up what it
// stored, as a leader that hands over would tell it to (raft's TimeoutNow): else it
// waits for ticks, which are far apart. Before that it must not be told: raft looks
// through all that it does not know to be applied, some of which etcd may have
// dropped already, and panics.
func (e *Embedded) elect(ctx context.Context) {
	self := uint64(e.server.MemberID())
	for e.server.Leader() == types.ID(raft.None) && ctx.Err() == nil {
		if status := raftStatus(); status.GetCommit() > 0 && status.Applied >= status.GetCommit() {
			// What fails here is left to the tick.
			_ = e.server.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &self, To: &self})
		}
		_ = backoff.Sleep(ctx, clock.RealClock{}, electionPace)
	}
}

// raftStatus is that of the server started last, as etcd publishes it for debuggers;
// empty where there is none.
func raftStatus() raft.Status {
	published, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return raft.Status{}
	}
	status, _ := published.Value().(raft.Status)
	return status
}
