package events

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
)

const (
	// remembered bounds how many kinds of event are remembered at a time.
	remembered = 4096
	// Events of one reason about one object that differ only in their message
	// become one "(combined from similar events)" after this many in window.
	alikeLimit = 10
	window     = 10 * time.Minute
	// burst is how many events of each type may be sent about an object, plus one
	// more every five minutes. The limit is for each type, so that probes that
	// fail all the time leave room for events about how the pod ends.
	burst  = 25
	refill = rate.Limit(1.0 / 300)
)

// alike is what events have in common that differ only in their message.
type alike struct {
	object       core.ObjectReference
	kind, reason string
}

// same is what equal events have in common.
type same struct {
	alike
	message string
}

type seen struct {
	name  string // of the Event in the API
	count int32
	first time.Time
	last  time.Time
}

type group struct {
	messages map[string]struct{}
	last     time.Time
}

// correlator decides whether an event is new, a repetition, or too much. It is
// used by one goroutine.
type correlator struct {
	clock  clock.PassiveClock
	events map[same]*seen
	groups map[alike]*group
	limits map[teller]*rate.Limiter
}

// teller identifies what a rate limit applies to.
type teller struct {
	object types.UID
	kind   string
}

func newCorrelator(clock clock.PassiveClock) *correlator {
	return &correlator{clock: clock, events: map[same]*seen{}, groups: map[alike]*group{}, limits: map[teller]*rate.Limiter{}}
}

// correlate completes event. known says that an event of its name is already in
// the API; ok is false if it should not be sent.
func (c *correlator) correlate(event *core.Event) (known, ok bool) {
	now := c.clock.Now()
	c.forget(now)
	if !c.limit(teller{event.InvolvedObject.UID, event.Type}).AllowN(now, 1) {
		return false, false
	}
	like := alike{object: event.InvolvedObject, kind: event.Type, reason: event.Reason}
	like.object.ResourceVersion = ""
	g := c.groups[like]
	if g == nil || now.Sub(g.last) > window {
		g = &group{messages: map[string]struct{}{}}
		c.groups[like] = g
	}
	g.last = now
	g.messages[event.Message] = struct{}{}
	key := same{alike: like, message: event.Message}
	if len(g.messages) > alikeLimit {
		delete(g.messages, event.Message) // keeps the group bounded
		event.Message = "(combined from similar events): " + event.Message
		key.message = "" // one event for all that come now
	}
	s := c.events[key]
	if s == nil {
		c.events[key] = &seen{name: event.Name, count: 1, first: now, last: now}
		return false, true
	}
	s.count++
	s.last = now
	event.Name, event.Count = s.name, s.count
	event.FirstTimestamp.Time = s.first
	return true, true
}

func (c *correlator) limit(who teller) *rate.Limiter {
	l := c.limits[who]
	if l == nil {
		l = rate.NewLimiter(refill, burst)
		c.limits[who] = l
	}
	return l
}

// forget drops what is older than the window, and everything if that is not
// enough: sending an event twice is better than growing for ever.
func (c *correlator) forget(now time.Time) {
	if len(c.events)+len(c.groups)+len(c.limits) < remembered {
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
	if len(c.events)+len(c.groups)+len(c.limits) >= remembered {
		clear(c.events)
		clear(c.groups)
		clear(c.limits)
	}
}
