package relaystamps

import (
	"cmp"
	"slices"
	"time"

	"kctl/proto/relay"
)

const (
	// maxOthers bounds how many other servers a server knows of.
	maxOthers = 64
	// forgotten is after how long a silent server will not come back; upstream's, for API
	// servers' Leases.
	forgotten = time.Hour
)

// other is another API server's process.
type other struct {
	server      relay.Server
	silentSince time.Time // zero if it has answered last time
}

// others are those known, by the process' id.
type others map[string]*other

// heard notes that a server lives.
func (o others) heard(id string, server relay.Server) {
	if o[id] == nil && len(o) >= maxOthers {
		return
	}
	o[id] = &other{server: server}
}

// awaited are those that are expected to answer.
func (o others) awaited() map[string]bool {
	out := map[string]bool{}
	for id, other := range o {
		if other.silentSince.IsZero() {
			out[id] = true
		}
	}
	return out
}

// notHeard notes that servers have not answered.
func (o others) notHeard(missing map[string]bool, now time.Time) {
	for id := range missing {
		if other := o[id]; other != nil {
			other.silentSince = now
		}
	}
}

// servers are those that were asked, by name. One that was silent, and in whose place another has
// been started, is not there any more.
func (o others) servers(self relay.Server, now time.Time) []relay.Server {
	var out []relay.Server
	for id, other := range o {
		if !other.silentSince.IsZero() && (now.Sub(other.silentSince) > forgotten || o.replaced(other.server, self)) {
			delete(o, id)
			continue
		}
		server := other.server
		server.Silent = !other.silentSince.IsZero()
		out = append(out, server)
	}
	slices.SortFunc(out, func(a, b relay.Server) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.Started.Compare(b.Started)) })
	return out
}

func (o others) replaced(server, self relay.Server) bool {
	later := func(s relay.Server) bool { return s.Name == server.Name && s.Started.After(server.Started) }
	if later(self) {
		return true
	}
	for _, other := range o {
		if later(other.server) {
			return true
		}
	}
	return false
}

// merge puts together what several servers know of the pod that has a name. The server that has
// stored the pod comes first: of what several have stamped (each watches the pods) its stamp
// counts, so that clocks that differ don't mix.
func merge(traces []relay.Trace) relay.Trace {
	out := traces[0]
	var newest time.Time
	for _, t := range traces { // of a pod that is gone a server may still know, and of its successor others
		if last := latest(t.Stamps, t.Restarts); last.After(newest) {
			newest, out.UID = last, t.UID
		}
	}
	traces = slices.DeleteFunc(slices.Clone(traces), func(t relay.Trace) bool { return t.UID != out.UID })
	slices.SortStableFunc(traces, func(a, b relay.Trace) int { return cmp.Compare(storedIt(a), storedIt(b)) })
	out.Stamps, out.Restarts = []relay.Stamp{}, nil
	for _, t := range traces {
		for _, told := range t.Restarts {
			out.Restarts = relay.Remember(out.Restarts, told)
		}
		for _, s := range t.Stamps {
			if relay.MayFollow(out.Stamps, s.Hop) {
				out.Stamps = append(out.Stamps, s)
			}
		}
	}
	inOrder(out.Stamps)
	restartsInOrder(out.Restarts)
	return out
}

func storedIt(t relay.Trace) int {
	if find(t.Stamps, relay.ServerStored) != nil {
		return 0
	}
	return 1
}
