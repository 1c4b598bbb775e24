package cycle

import (
	"bytes"
	"slices"

	"kctl/scheduler/framework"
)

// maxSignatures is how many signatures have cached answers, the most recent ones: that
// many controllers may create pods in turn without plugins being asked again about
// unchanged nodes.
const maxSignatures = 8

// signatureCache holds what plugins said about nodes, for pods that are alike
// (framework.Sign). The cycle's goroutine owns it.
type signatureCache[A any] struct {
	bySignature []*signatureEntry[A] // the one that was asked for last comes first
	signature   framework.Signature
}

// signatureEntry is what was said for pods of one signature: an answer for each place
// in the snapshot's turns.
type signatureEntry[A any] struct {
	profile   *framework.Profile
	signature []byte
	answers   []cachedAnswer[A]
}

// cachedAnswer holds for one state of one node, which its generation stands for.
type cachedAnswer[A any] struct {
	generation int64
	value      A
}

// lookup returns what plugins said about that many places for pods like this
// one, or nil if not all plugins sign pods.
func lookup[A any, P framework.Plugin](c *signatureCache[A], profile *framework.Profile, plugins []P, pod *framework.PodInfo,
	places int) []cachedAnswer[A] {
	c.signature = c.signature[:0]
	for _, plugin := range plugins {
		signing, signs := any(plugin).(framework.Sign)
		if !signs {
			return nil
		}
		c.signature.String(plugin.Name())
		signing.SignPod(pod, &c.signature)
	}
	at := slices.IndexFunc(c.bySignature, func(e *signatureEntry[A]) bool {
		return e.profile == profile &&
			bytes.Equal(e.signature, c.signature)
	})
	if at < 0 {
		at = c.evictOldest()
		c.bySignature[at].profile, c.bySignature[at].signature = profile, bytes.Clone(c.signature)
	}
	found := c.bySignature[at]
	copy(c.bySignature[1:], c.bySignature[:at])
	c.bySignature[0] = found
	if missing := places - len(found.answers); missing > 0 {
		found.answers = append(found.answers, make([]cachedAnswer[A], missing)...)
	}
	return found.answers[:places]
}

// evictOldest returns a slot for a new signature; if all are taken, that of the
// least recently used.
func (c *signatureCache[A]) evictOldest() int {
	if len(c.bySignature) < maxSignatures {
		c.bySignature = append(c.bySignature, &signatureEntry[A]{})
	}
	last := len(c.bySignature) - 1
	clear(c.bySignature[last].answers)
	return last
}
