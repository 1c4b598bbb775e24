package relaystamps

import (
	"cmp"
	"slices"
	"sync"

	"kctl/proto/relay"
)

// Capacity is the number of pods whose relay a server remembers.
const Capacity = 4096

type key struct{ namespace, name string }

// Ring keeps the traces of the last pods. When it is full, the oldest is
// forgotten first. It is safe for concurrent use.
type Ring struct {
	mu     sync.Mutex
	traces map[key]*relay.Trace
	order  []key // a ring: next is the position of the oldest once it is full
	next   int
	size   int
}

// NewRing returns a Ring for size pods.
func NewRing(size int) *Ring {
	return &Ring{traces: map[key]*relay.Trace{}, size: size}
}

// Add adds stamps to a pod's trace. The first stamp of each hop is kept.
// Another uid than the known one means a new pod of that name, whose trace
// starts afresh. An end starts none: the watch may tell of the old pod's after
// the answer to the create of the new one.
func (r *Ring) Add(namespace, name, uid string, stamps ...relay.Stamp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.entry(namespace, name)
	if t.UID != uid {
		if t.UID != "" && !slices.ContainsFunc(stamps, func(s relay.Stamp) bool { return !s.Hop.OfEnd() }) {
			return
		}
		t.UID, t.Stamps, t.Restarts = uid, nil, nil
	}
	for _, s := range stamps {
		if relay.MayFollow(t.Stamps, s.Hop) {
			t.Stamps = append(t.Stamps, s)
		}
	}
}

// AddRestarts adds what is told of restarts of a pod's containers. The last ones are kept.
func (r *Ring) AddRestarts(namespace, name, uid string, restarts ...relay.Restart) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.entry(namespace, name)
	if t.UID != uid {
		t.UID, t.Stamps, t.Restarts = uid, nil, nil
	}
	for _, told := range restarts {
		t.Restarts = relay.Remember(t.Restarts, told)
	}
}

func (r *Ring) entry(namespace, name string) *relay.Trace {
	k := key{namespace, name}
	if t := r.traces[k]; t != nil {
		return t
	}
	t := &relay.Trace{Namespace: namespace, Name: name}
	if len(r.order) < r.size {
		r.order = append(r.order, k)
	} else {
		delete(r.traces, r.order[r.next])
		r.order[r.next] = k
		r.next = (r.next + 1) % r.size
	}
	r.traces[k] = t
	return t
}

// Trace returns what is known of a pod's relay, ordered by time.
//
// etcd answers the writer and tells the watchers at once. Whichever of the two this server
// hears of first is when it knows that the pod is stored.
func (r *Ring) Trace(namespace, name string) (relay.Trace, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.traces[key{namespace, name}]
	if t == nil {
		return relay.Trace{}, false
	}
	out := *t
	out.Stamps, out.Restarts = slices.Clone(t.Stamps), slices.Clone(t.Restarts)
	stored, watched := find(out.Stamps, relay.ServerStored), find(out.Stamps, relay.ServerWatched)
	if stored != nil && watched != nil && watched.At.Before(stored.At) {
		stored.At = watched.At
	}
	inOrder(out.Stamps)
	restartsInOrder(out.Restarts)
	return out, true
}

func find(stamps []relay.Stamp, hop relay.Hop) *relay.Stamp {
	at := slices.IndexFunc(stamps, func(s relay.Stamp) bool { return s.Hop == hop })
	if at < 0 {
		return nil
	}
	return &stamps[at]
}

// inOrder sorts stamps by time, and those of the same time as the relay passes them.
func inOrder(stamps []relay.Stamp) {
	slices.SortStableFunc(stamps, func(a, b relay.Stamp) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Hop.Place(), b.Hop.Place()))
	})
}

// restartsInOrder sorts restarts by what is the last that is known of them.
func restartsInOrder(restarts []relay.Restart) {
	slices.SortStableFunc(restarts, func(a, b relay.Restart) int { return a.Last().Compare(b.Last()) })
}
