package relay

import "strings"

// known are the hops of the relay in its order. Those with perContainer are passed by each
// container, and have its name appended.
var known = []struct {
	hop          Hop
	perContainer bool
}{
	{ClientStarted, false}, {ClientGenerated, false}, {ClientSent, false},
	{ServerReceived, false}, {ServerAuthenticated, false}, {ServerAuthorized, false}, {ServerDecoded, false}, {ServerMutated, false},
	{ServerValidated, false}, {ServerAdmitted, false}, {ServerStored, false},
	{ServerWatched, false},
	{SchedulerQueued, false}, {SchedulerPopped, false}, {SchedulerFiltered, false}, {SchedulerScored, false}, {SchedulerAssumed, false},
	{SchedulerPermitted, false}, {SchedulerBinding, false},
	{ServerBound, false},
	{KubeletSeen, false}, {KubeletAdmitted, false}, {KubeletWorker, false}, {KubeletCgroupCreated, false},
	{KubeletVolumesReady, false}, {KubeletSandboxCreated, false},
	{KubeletImagePulled, true}, {KubeletCreated, true}, {KubeletStarted, true},
	{KubeletRunning, false}, {KubeletReady, false}, {ServerStatusRunning, false},
	{ServerDeleting, false}, {KubeletStopping, false}, {KubeletStopped, false}, {ServerRemoved, false},
}

var places = func() map[Hop]int {
	out := make(map[Hop]int, len(known))
	for i, k := range known {
		out[k.hop] = i
	}
	return out
}()

// Program is the program that passes the hop: the part of its name before the point.
func (h Hop) Program() string {
	program, _, _ := strings.Cut(string(h), ".")
	return program
}

// Known reports whether the hop is one of those above, with the name of a container where, and
// only where, it is a container's.
func (h Hop) Known() bool {
	base, container, named := strings.Cut(string(h), "/")
	place, ok := places[Hop(base)]
	return ok && named == known[place].perContainer && named == (container != "") && !strings.ContainsAny(container, "./")
}

// Place is the hop's place in the relay's order; unknown hops come last.
func (h Hop) Place() int {
	base, _, _ := strings.Cut(string(h), "/")
	if place, ok := places[Hop(base)]; ok {
		return place
	}
	return len(known)
}

// MayFollow reports whether another stamp, of hop, may be added to have: each hop is stamped once,
// and only as many as MaxStamps are of containers, so that however many a pod has, the hops of
// the pod itself find room.
func MayFollow(have []Stamp, hop Hop) bool {
	container := strings.Contains(string(hop), "/")
	ofContainers := 0
	for _, s := range have {
		if s.Hop == hop {
			return false
		}
		if container && strings.Contains(string(s.Hop), "/") {
			ofContainers++
		}
	}
	return ofContainers < MaxStamps && len(have) < maxSent
}
