package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kctl/proto/relay"
)

// Moment is one known moment on the pod's way.
type Moment struct {
	Hop relay.Hop
	At  time.Time
	// Approximate moments come from API fields of whole seconds.
	Approximate bool
}

// Row is a moment with its place in the relay.
type Row struct {
	Leg         int           `json:"leg"`
	Who         string        `json:"who"`
	What        string        `json:"what"`
	Hop         relay.Hop     `json:"hop"`
	Container   string        `json:"container,omitempty"`
	At          time.Time     `json:"at"`
	Offset      time.Duration `json:"-"` // since the first moment
	Took        time.Duration `json:"-"` // since what it waited for
	Approximate bool          `json:"approximate,omitempty"`

	known *hop // nil if the program is newer than this one
	place int  // in the relay's order
	after int  // the row that it waited for; -1 for the first
}

// Timeline is a pod's way, in the order of time.
type Timeline struct {
	Rows  []Row
	Total time.Duration
}

// hop describes a hop: its leg in the relay, and the hops that lead to it. A
// row's duration is counted from the latest known one of these, so that what
// runs side by side (image pull and sandbox) is shown side by side.
type hop struct {
	name  relay.Hop
	leg   int
	who   string
	what  string
	after []relay.Hop
}

// hops are in the relay's order, which moments of the same time keep.
var hops = []hop{
	{relay.ClientStarted, 1, "kctl", "command entered", nil},
	{relay.ClientGenerated, 1, "kctl", "flags checked, pod generated", []relay.Hop{relay.ClientStarted}},
	{relay.ClientSent, 1, "kctl", "POST sent", []relay.Hop{relay.ClientGenerated, relay.ClientStarted}},

	{relay.ServerReceived, 2, "apiserver", "request received", []relay.Hop{relay.ClientSent}},
	{relay.ServerAuthenticated, 2, "apiserver", "authenticated", []relay.Hop{relay.ServerReceived}},
	{relay.ServerAuthorized, 2, "apiserver", "authorized", []relay.Hop{relay.ServerAuthenticated}},
	{relay.ServerDecoded, 3, "apiserver", "decoded, defaulted", []relay.Hop{relay.ServerAuthorized}},
	{relay.ServerMutated, 3, "apiserver", "mutating admission done", []relay.Hop{relay.ServerDecoded}},
	{relay.ServerValidated, 3, "apiserver", "validated", []relay.Hop{relay.ServerMutated}},
	{relay.ServerAdmitted, 3, "apiserver", "validating admission done", []relay.Hop{relay.ServerValidated, relay.ServerAuthorized}},
	{relay.ServerStored, 4, "apiserver", "stored in etcd", []relay.Hop{relay.ServerAdmitted}},
	{relay.ServerWatched, 5, "apiserver", "handed to the watchers", []relay.Hop{relay.ServerStored}},

	{relay.SchedulerQueued, 6, "scheduler", "queued", []relay.Hop{relay.ServerWatched}},
	{relay.SchedulerPopped, 6, "scheduler", "taken from the queue", []relay.Hop{relay.SchedulerQueued}},
	{relay.SchedulerFiltered, 6, "scheduler", "nodes filtered", []relay.Hop{relay.SchedulerPopped}},
	{relay.SchedulerScored, 6, "scheduler", "nodes scored", []relay.Hop{relay.SchedulerFiltered}},
	{relay.SchedulerAssumed, 6, "scheduler", "node assumed", []relay.Hop{relay.SchedulerScored}},
	{relay.SchedulerPermitted, 6, "scheduler", "reserved, permitted", []relay.Hop{relay.SchedulerAssumed}},
	{relay.SchedulerBinding, 7, "scheduler", "Binding sent", []relay.Hop{relay.SchedulerPermitted, relay.SchedulerAssumed}},
	{relay.ServerBound, 8, "apiserver", "Binding stored", []relay.Hop{relay.SchedulerBinding}},

	{relay.KubeletSeen, 9, "kubelet", "seen", []relay.Hop{relay.ServerBound}},
	{relay.KubeletAdmitted, 9, "kubelet", "admitted", []relay.Hop{relay.KubeletSeen}},
	{relay.KubeletWorker, 9, "kubelet", "worker started", []relay.Hop{relay.KubeletAdmitted}},

	{relay.KubeletCgroupCreated, 10, "kubelet", "control group made", []relay.Hop{relay.KubeletWorker}},
	{relay.KubeletVolumesReady, 10, "kubelet", "volumes ready", []relay.Hop{relay.KubeletCgroupCreated, relay.KubeletWorker}},
	{relay.KubeletSandboxCreated, 10, "kubelet", "sandbox created", []relay.Hop{relay.KubeletVolumesReady, relay.KubeletCgroupCreated,
		relay.KubeletWorker}},
	{relay.KubeletImagePulled, 10, "kubelet", "image there", []relay.Hop{relay.KubeletCgroupCreated, relay.KubeletWorker}},
	{relay.KubeletCreated, 10, "kubelet", "container created", []relay.Hop{relay.KubeletSandboxCreated, relay.KubeletImagePulled,
		relay.KubeletVolumesReady}},
	{relay.KubeletStarted, 10, "kubelet", "container started", []relay.Hop{relay.KubeletCreated}},

	{relay.KubeletRunning, 11, "kubelet", "seen running", []relay.Hop{relay.KubeletStarted}},
	{relay.KubeletReady, 11, "kubelet", "ready", []relay.Hop{relay.KubeletRunning, relay.KubeletStarted}},
	{relay.ServerStatusRunning, 11, "apiserver", "status Running stored", []relay.Hop{relay.KubeletRunning}},

	// A restart, which begins with the end of the run before.
	{ended, 10, "kubelet", "container ended", nil},
	{backOffBegan, 10, "kubelet", "back-off began", []relay.Hop{ended}},
	{backOffOver, 10, "kubelet", "back-off over", []relay.Hop{backOffBegan}},
	{readyAgain, 11, "kubelet", "ready", []relay.Hop{relay.KubeletStarted}},

	// The end, whose legs are counted anew.
	{relay.ServerDeleting, 2, "apiserver", "deletion stored", nil},
	{relay.KubeletStopping, 3, "kubelet", "worker starts to end it", []relay.Hop{relay.ServerDeleting}},
	{relay.KubeletStopped, 4, "kubelet", "containers ended", []relay.Hop{relay.KubeletStopping}},
	{relay.ServerRemoved, 6, "apiserver", "object removed", []relay.Hop{relay.KubeletStopped, relay.ServerDeleting}},
}

// Layout puts moments in order and finds how long each took. If several moments
// are given for one hop, the first in the list counts: give the exact ones
// first.
func Layout(moments []Moment) Timeline {
	known := make(map[relay.Hop]Moment, len(moments))
	var rows []Row
	for _, m := range moments {
		if _, twice := known[m.Hop]; twice || m.At.IsZero() {
			continue
		}
		known[m.Hop] = m
		rows = append(rows, newRow(m))
	}
	if len(rows) == 0 {
		return Timeline{}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.place, b.place)) })
	zero := rows[0].At
	for i := range rows {
		rows[i].Offset = rows[i].At.Sub(zero)
		rows[i].after = waitedFor(rows, i)
		if i > 0 {
			rows[i].Took = rows[i].At.Sub(rows[rows[i].after].At)
		}
	}
	return Timeline{Rows: rows, Total: rows[len(rows)-1].Offset}
}

func newRow(m Moment) Row {
	base, container, _ := strings.Cut(string(m.Hop), "/")
	row := Row{Hop: m.Hop, Container: container, At: m.At, Approximate: m.Approximate}
	at := slices.IndexFunc(hops, func(h hop) bool { return h.name == relay.Hop(base) })
	if at < 0 {
		row.Who, row.What, _ = strings.Cut(base, ".") // its name has to do
		row.place = len(hops)
		return row
	}
	row.known, row.place = &hops[at], at
	row.Leg, row.Who, row.What = row.known.leg, row.known.who, row.known.what
	return row
}

// waitedFor is the latest row that row i waited for: of the hops that lead to
// its own, or, where none of them is known, simply the row before.
func waitedFor(rows []Row, i int) int {
	if rows[i].known == nil {
		return i - 1
	}
	for j := i - 1; j >= 0; j-- {
		if rows[j].Container != "" && rows[i].Container != "" && rows[j].Container != rows[i].Container {
			continue
		}
		if rows[j].known != nil && slices.Contains(rows[i].known.after, rows[j].known.name) {
			return j
		}
	}
	return i - 1
}

// Path says for each row whether the whole waited for it: the last row, what
// that waited for, and so on back to the first. Their durations add up to the
// total; all other rows ran beside them.
func (t Timeline) Path() []bool {
	on := make([]bool, len(t.Rows))
	for i := len(t.Rows) - 1; i >= 0; i = t.Rows[i].after {
		on[i] = true
	}
	return on
}
