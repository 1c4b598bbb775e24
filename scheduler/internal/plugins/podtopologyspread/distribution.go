package podtopologyspread

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// tallies count pods and nodes by domain, for one pod's constraints.
type tallies struct {
	state       *framework.CycleState
	pod         *core.Pod
	own         nodeaffinity.RequiredNodeAffinity
	constraints []constraint
	needsAll    bool // nodes must have all labels of the constraints
	pool        string
	alone       bool                  // the sums are not shared with other attempts
	having      []*framework.NodeInfo // then: the nodes that have all needed labels
}

// maxShared is how many constraints a pod may have for its sums to be shared with
// later attempts. More would displace each other, and a sum that says which nodes take
// part names all constraints: with thousands of them, one pod would keep the scheduler
// from all others for as long as it takes to write thousands of such names.
const maxShared = 16

func newTallies(state *framework.CycleState, pod *core.Pod, own nodeaffinity.RequiredNodeAffinity, constraints []constraint,
	needsAll bool) *tallies {
	t := &tallies{state: state, pod: pod, own: own, constraints: constraints, needsAll: needsAll}
	if t.alone = len(constraints) > maxShared; t.alone {
		for _, node := range state.Nodes {
			if !needsAll || hasAll(node.Node, constraints) {
				t.having = append(t.having, node)
			}
		}
		return t
	}
	t.pool = Name
	if needsAll {
		for i := range constraints {
			t.pool += " " + constraints[i].key
		}
	}
	return t
}

// sum adds up what nodes count for.
func (t *tallies) sum(key func() string, count framework.CountFunc) framework.Tally {
	if !t.alone {
		return t.state.Tally(key(), count)
	}
	sum := framework.Tally{}
	for _, node := range t.having {
		count(node, sum.Add)
	}
	return sum
}

// among says which nodes take part in a constraint.
func (t *tallies) among(c *constraint) string {
	var b strings.Builder
	b.WriteString(t.pool + " by " + c.key)
	if c.honorNodes && (len(t.pod.Spec.NodeSelector) > 0 || framework.RequiredNodeTerms(t.pod) != nil) {
		b.WriteString(" on " + text(t.pod.Spec.NodeSelector) + text(framework.RequiredNodeTerms(t.pod)))
	}
	if c.honorTaints {
		b.WriteString(" tolerating " + text(t.pod.Spec.Tolerations))
	}
	return b.String()
}

// text is a unique textual form of a part of a pod's specification.
func text(part any) string {
	data, err := json.Marshal(part)
	if err != nil {
		return fmt.Sprintf("%#v", part) // no part of a specification is like that
	}
	return string(data)
}

// takesPart reports whether pods on node count for the constraint.
func (t *tallies) takesPart(c *constraint, node *core.Node) bool {
	return (t.alone || !t.needsAll || hasAll(node, t.constraints)) && c.counts(t.pod, t.own, node)
}

// pods counts those that the constraint is about.
func (t *tallies) pods(c *constraint) framework.Tally {
	key := func() string {
		return fmt.Sprintf("%s: pods of %s (%s %t)", t.among(c), t.pod.Namespace, c.selector, c.selector.Empty())
	}
	return t.sum(key, func(node *framework.NodeInfo, add framework.AddFunc) {
		if len(node.Pods) == 0 || !t.takesPart(c, node.Node) {
			return
		}
		if n := c.matching(t.pod.Namespace, node); n > 0 {
			add.At(node.Node, c.key, n)
		}
	})
}

// nodes counts those that take part: domains without a pod are domains, too.
func (t *tallies) nodes(c *constraint) framework.Tally {
	return t.sum(func() string { return t.among(c) + ": nodes" }, func(node *framework.NodeInfo, add framework.AddFunc) {
		if t.takesPart(c, node.Node) {
			add.At(node.Node, c.key, 1)
		}
	})
}

// distribution is how the pods that a required constraint is about are spread over
// its domains.
type distribution struct {
	key     string
	domains map[string]int64 // nodes in each
	pods    framework.WhatIf
	few     bool  // there are fewer domains than there should be
	least   int64 // pods in the domain that has the fewest
	holders int   // domains with that number
	self    int64 // 1 if the pod itself will count
}

func newDistribution(c *constraint, pod *core.Pod, t *tallies) distribution {
	s := distribution{key: c.key, domains: t.nodes(c)[c.key], pods: framework.NewWhatIf(t.pods(c))}
	s.few = int64(len(s.domains)) < c.minDomains
	if c.selector.Matches(labels.Set(pod.Labels)) {
		s.self = 1
	}
	s.findLeast()
	return s
}

// findLeast looks at all domains.
func (s *distribution) findLeast() {
	s.least, s.holders = 0, 0
	for domain := range s.domains {
		switch n := s.pods.At(s.key, domain); {
		case s.holders == 0 || n < s.least:
			s.least, s.holders = n, 1
		case n == s.least:
			s.holders++
		}
	}
}

// add counts a pod in or out, in a what-if.
func (s *distribution) add(domain string, by int64) {
	before := s.pods.At(s.key, domain)
	s.pods.Add(s.key, domain, by)
	switch after := before + by; {
	case after < s.least:
		s.least, s.holders = after, 1
	case after == s.least:
		s.holders++
	case before == s.least:
		if s.holders--; s.holders == 0 {
			s.findLeast()
		}
	}
}

// skew is by how many pods the domain would be ahead of the one with the
// fewest, which counts as zero as long as there are fewer domains than
// required.
func (s *distribution) skew(domain string) int64 {
	n := s.pods.At(s.key, domain) + s.self
	if s.few {
		return n
	}
	return n - s.least
}
