package relaystamps

import (
	"math"
	"slices"
	"testing"
	"time"

	"kctl/proto/relay"
)

func TestAccept(t *testing.T) {
	arrived := start.Add(time.Minute)
	at := func(hop relay.Hop, after time.Duration) relay.Stamp {
		return relay.Stamp{Hop: hop, At: arrived.Add(after)}
	}
	for name, tc := range map[string]struct {
		program    string
		born       time.Time
		sent, want []relay.Stamp
	}{
		"nothing": {"kubelet", start, nil, nil},
		"its own hops": {"kubelet", start,
			[]relay.Stamp{at(relay.KubeletSeen, -2), at(relay.SchedulerBinding, -2), at(relay.ServerStored, -2), at(relay.KubeletStarted.Of("web"), -1)},
			[]relay.Stamp{at(relay.KubeletSeen, -2), at(relay.KubeletStarted.Of("web"), -1)}},
		"hops that nobody passes": {"kctl", arrived, []relay.Stamp{at("kctl.slept", -1), at(relay.ClientSent.Of("web"), -1), at("kctl", -1)}, nil},
		// The time between the two is as it was measured, and both are past.
		"a clock that is ahead": {"kctl", arrived,
			[]relay.Stamp{at(relay.ClientStarted, 9*time.Second), at(relay.ClientSent, 10*time.Second)},
			[]relay.Stamp{at(relay.ClientStarted, -time.Second), at(relay.ClientSent, 0)}},
		"a clock that is behind": {"kctl", arrived,
			[]relay.Stamp{at(relay.ClientStarted, -59*time.Minute), at(relay.ClientSent, -58*time.Minute)},
			[]relay.Stamp{at(relay.ClientStarted, -59*time.Minute), at(relay.ClientSent, -58*time.Minute)}},
		"absurd times": {"kctl", arrived,
			[]relay.Stamp{{Hop: relay.ClientStarted, At: time.UnixMicro(1)}, {Hop: relay.ClientGenerated, At: time.UnixMicro(math.MinInt64)}, at(relay.ClientSent, -1)},
			[]relay.Stamp{at(relay.ClientSent, -1)}},
		// Nothing is older than a whole that ends in the far future.
		"the far future": {"kctl", arrived,
			[]relay.Stamp{at(relay.ClientStarted, -1), {Hop: relay.ClientSent, At: arrived.AddDate(200, 0, 0)}},
			[]relay.Stamp{at(relay.ClientSent, 0)}},
		"the end of time": {"kctl", arrived, []relay.Stamp{{Hop: relay.ClientSent, At: time.UnixMicro(math.MaxInt64)}}, nil},
		"a pod that has waited for its node for days": {"scheduler", arrived.AddDate(0, 0, -7),
			[]relay.Stamp{at(relay.SchedulerQueued, -160*time.Hour), at(relay.SchedulerBinding, -1)},
			[]relay.Stamp{at(relay.SchedulerQueued, -160*time.Hour), at(relay.SchedulerBinding, -1)}},
	} {
		t.Run(name, func(t *testing.T) {
			same := func(a, b relay.Stamp) bool { return a.Hop == b.Hop && a.At.Equal(b.At) }
			got := Accept(relay.Report{Stamps: slices.Clone(tc.sent)}, tc.program, tc.born, arrived).Stamps
			if !slices.EqualFunc(got, tc.want, same) {
				t.Errorf("got  %v\nwant %v", got, tc.want)
			}
		})
	}
}

func TestAcceptRestarts(t *testing.T) {
	arrived := start.Add(time.Hour)
	at := func(after time.Duration) time.Time { return arrived.Add(after) }
	whole := relay.Restart{
		Container: "web", Number: 2, Cause: relay.CauseOOM, ExitCode: 137, Reason: "OOMKilled", Began: at(-time.Minute), Ended: at(-3 * time.Second),
		BackOffFrom: at(-2 * time.Second), BackOffUntil: at(8 * time.Second),
	}
	later := whole
	putBack(&later, -9*time.Second)
	wanted := whole
	putBack(&wanted, -2*time.Second) // its last moment is when the request has come
	absurd := whole
	absurd.Began, absurd.Created = time.UnixMicro(1), time.UnixMicro(math.MinInt64)
	endless := whole
	endless.BackOffUntil = at(2 * time.Hour)
	noUntil := whole
	noUntil.BackOffUntil = time.Time{}
	noBegan := whole
	noBegan.Began = time.Time{}
	for name, tc := range map[string]struct {
		program    string
		sent, want []relay.Restart
	}{
		"a kubelet's":                {"kubelet", []relay.Restart{whole}, []relay.Restart{whole}},
		"a scheduler's":              {"scheduler", []relay.Restart{whole}, nil},
		"a client's":                 {"kctl", []relay.Restart{whole}, nil},
		"a clock that is ahead":      {"kubelet", []relay.Restart{later}, []relay.Restart{wanted}},
		"absurd times":               {"kubelet", []relay.Restart{absurd}, []relay.Restart{noBegan}},
		"a back-off without end":     {"kubelet", []relay.Restart{endless}, []relay.Restart{noUntil}},
		"nothing that can be true":   {"kubelet", []relay.Restart{{Container: "web", Number: 1, Ended: time.UnixMicro(1)}}, nil},
		"the end of a wait, no more": {"kubelet", []relay.Restart{{Container: "web", Number: 1, BackOffUntil: at(-1)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Accept(relay.Report{Restarts: tc.sent}, tc.program, start, arrived).Restarts; !slices.Equal(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
	// What lies between stamps and restarts of one request stays as it was measured.
	together := Accept(relay.Report{
		Stamps:   []relay.Stamp{{Hop: relay.KubeletSeen, At: at(time.Second)}},
		Restarts: []relay.Restart{{Container: "web", Number: 1, Ended: at(-time.Second)}},
	}, "kubelet", start, arrived)
	if !together.Stamps[0].At.Equal(arrived) || !together.Restarts[0].Ended.Equal(at(-2*time.Second)) {
		t.Errorf("%+v", together)
	}
}
