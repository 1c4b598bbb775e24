package events

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/proto/core"
)

const (
	// maxRemembered bounds how many events are remembered at a time, how many groups of
	// them, and how many rate limits: those that were needed last.
	maxRemembered = 4096
	// Events of one reason about one object that differ only in their message
	// become one "(combined from similar events)" after this many in window.
	maxSimilar = 10
	window     = 10 * time.Minute
	// burst is how many events of each type may be sent about an object, plus one
	// more every five minutes. The limit is for each type, so that probes that
	// fail all the time leave room for events about how the pod ends.
	burst  = 25
	refill = rate.Limit(1.0 / 300)
)

// similarKey is what events have in common that differ only in their message.
type similarKey struct {
	object       core.ObjectReference
	kind, reason string
}

// equalKey is what equal events have in common.
type equalKey struct {
	similarKey
	message string
}

type occurrence struct {
	name  string // of the Event in the API
	count int32
	first time.Time
}

type similarGroup struct {
	messages map[string]struct{}
	last     time.Time
}

// correlator decides whether an event is new, a repetition, or too much. It is
// used by one goroutine.
type correlator struct {
	clock  clock.PassiveClock
	events *lru.Cache // an *occurrence for an equalKey
	groups *lru.Cache // a *similarGroup for a similarKey
	limits *lru.Cache // a *rate.Limiter for a limiterKey
}

// limiterKey identifies what a rate limit applies to.
type limiterKey struct {
	object types.UID
	kind   string
}

func newCorrelator(clock clock.PassiveClock) *correlator {
	return &correlator{
		clock:  clock,
		events: lru.New(maxRemembered),
		groups: lru.New(maxRemembered),
		limits: lru.New(maxRemembered),
	}
}

// remembered is what cache has for key; what was not there yet is made.
func remembered[V any](cache *lru.Cache, key lru.Key, create func() V) V {
	if known, ok := cache.Get(key); ok {
		return known.(V)
	}
	created := create()
	cache.Add(key, created)
	return created
}

// correlate completes event. known says that an event of its name is already in
// the API; ok is false if it should not be sent.
func (c *correlator) correlate(event *core.Event) (known, ok bool) {
	now := c.clock.Now()
	newLimit := func() *rate.Limiter { return rate.NewLimiter(refill, burst) }
	if !remembered(c.limits, limiterKey{event.InvolvedObject.UID, event.Type}, newLimit).AllowN(now, 1) {
		return false, false
	}
	like := similarKey{object: event.InvolvedObject, kind: event.Type, reason: event.Reason}
	like.object.ResourceVersion = ""
	g := remembered(c.groups, like, func() *similarGroup { return &similarGroup{} })
	if g.messages == nil || now.Sub(g.last) > window {
		g.messages = map[string]struct{}{}
	}
	g.last = now
	g.messages[event.Message] = struct{}{}
	key := equalKey{similarKey: like, message: event.Message}
	if len(g.messages) > maxSimilar {
		delete(g.messages, event.Message) // keeps the group bounded
		event.Message = "(combined from similar events): " + event.Message
		key.message = "" // one event for all that come now
	}
	s := remembered(c.events, key, func() *occurrence { return &occurrence{name: event.Name, first: now} })
	s.count++
	if s.count == 1 {
		return false, true
	}
	event.Name, event.Count = s.name, s.count
	event.FirstTimestamp.Time = s.first
	return true, true
}
