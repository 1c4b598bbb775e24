package cycle

import (
	"bytes"
	"slices"

	"kctl/scheduler/framework"
)

// kindsOfPods is how many kinds are remembered, the most recent ones: that many
// controllers may create pods in turn without plugins being asked again about
// unchanged nodes.
const kindsOfPods = 8

// memory holds what plugins said about nodes, for pods that are alike
// (framework.Sign). The cycle's goroutine owns it.
type memory[A any] struct {
	kinds     []*kind[A] // the one that was asked for last comes first
	signature framework.Signature
}

// kind is what was said for pods of one signature: an answer for each place in the
// snapshot's turns.
type kind[A any] struct {
	profile   *framework.Profile
	signature []byte
	answers   []answer[A]
}

// answer holds for one state of one node, which its generation stands for.
type answer[A any] struct {
	generation int64
	said       A
}

// recall returns what plugins said about that many places for pods like this
// one, or nil if not all plugins sign pods.
func recall[A any, P framework.Plugin](m *memory[A], profile *framework.Profile, plugins []P, pod *framework.PodInfo, places int) []answer[A] {
	m.signature = m.signature[:0]
	for _, plugin := range plugins {
		signing, signs := any(plugin).(framework.Sign)
		if !signs {
			return nil
		}
		m.signature.String(plugin.Name())
		signing.SignPod(pod, &m.signature)
	}
	at := slices.IndexFunc(m.kinds, func(k *kind[A]) bool { return k.profile == profile && bytes.Equal(k.signature, m.signature) })
	if at < 0 {
		at = m.forgetOldest()
		m.kinds[at].profile, m.kinds[at].signature = profile, bytes.Clone(m.signature)
	}
	found := m.kinds[at]
	copy(m.kinds[1:], m.kinds[:at])
	m.kinds[0] = found
	if missing := places - len(found.answers); missing > 0 {
		found.answers = append(found.answers, make([]answer[A], missing)...)
	}
	return found.answers[:places]
}

// forgetOldest returns a slot for a new kind; if all are taken, that of the
// least recently used.
func (m *memory[A]) forgetOldest() int {
	if len(m.kinds) < kindsOfPods {
		m.kinds = append(m.kinds, &kind[A]{})
	}
	last := len(m.kinds) - 1
	clear(m.kinds[last].answers)
	return last
}
