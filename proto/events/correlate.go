package events

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
)

const (
	// maxRemembered bounds how many kinds of event are remembered at a time.
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
	last  time.Time
}

type similarGroup struct {
	messages map[string]struct{}
	last     time.Time
}

// correlator decides whether an event is new, a repetition, or too much. It is
// used by one goroutine.
type correlator struct {
	clock  clock.PassiveClock
	events map[equalKey]*occurrence
	groups map[similarKey]*similarGroup
	limits map[limiterKey]*rate.Limiter
}

// limiterKey identifies what a rate limit applies to.
type limiterKey struct {
	object types.UID
	kind   string
}

func newCorrelator(clock clock.PassiveClock) *correlator {
	return &correlator{clock: clock, events: map[equalKey]*occurrence{}, groups: map[similarKey]*similarGroup{},
		limits: map[limiterKey]*rate.Limiter{}}
}

// correlate completes event. known says that an event of its name is already in
// the API; ok is false if it should not be sent.
func (c *correlator) correlate(event *core.Event) (known, ok bool) {
	now := c.clock.Now()
	c.evict(now)
	if !c.limiter(limiterKey{event.InvolvedObject.UID, event.Type}).AllowN(now, 1) {
		return false, false
	}
	like := similarKey{object: event.InvolvedObject, kind: event.Type, reason: event.Reason}
	like.object.ResourceVersion = ""
	g := c.groups[like]
	if g == nil || now.Sub(g.last) > window {
		g = &similarGroup{messages: map[string]struct{}{}}
		c.groups[like] = g
	}
	g.last = now
	g.messages[event.Message] = struct{}{}
	key := equalKey{similarKey: like, message: event.Message}
	if len(g.messages) > maxSimilar {
		delete(g.messages, event.Message) // keeps the group bounded
		event.Message = "(combined from similar events): " + event.Message
		key.message = "" // one event for all that come now
	}
	s := c.events[key]
	if s == nil {
		c.events[key] = &occurrence{name: event.Name, count: 1, first: now, last: now}
		return false, true
	}
	s.count++
	s.last = now
	event.Name, event.Count = s.name, s.count
	event.FirstTimestamp.Time = s.first
	return true, true
}

func (c *correlator) limiter(who limiterKey) *rate.Limiter {
	l := c.limits[who]
	if l == nil {
		l = rate.NewLimiter(refill, burst)
		c.limits[who] = l
	}
	return l
}

// evict drops what is older than the window, and everything if that is not
// enough: sending an event twice is better than growing for ever.
func (c *correlator) evict(now time.Time) {
	if len(c.events)+len(c.groups)+len(c.limits) < maxRemembered {
		return
	}
	for key, s := range c.events {
		if now.Sub(s.last) > window {
			delete(c.events, key)
		}
	}
	for key, g := range c.groups {
		if now.Sub(g.last) > window {
			delete(c.groups, key)
		}
	}
	for who, l := range c.limits {
		if l.TokensAt(now) >= burst {
			delete(c.limits, who)
		}
	}
	if len(c.events)+len(c.groups)+len(c.limits) >= maxRemembered {
		clear(c.events)
		clear(c.groups)
		clear(c.limits)
	}
}
