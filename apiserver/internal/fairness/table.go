package fairness

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync/atomic"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"kctl/apiserver/internal/request"
)

// schema is one flow schema, tied to its level.
type schema struct {
	name     string
	level    *level
	rules    []rule
	by       flowcontrolv1.FlowDistinguisherMethodType
	seed     uint64
	schemaID []string // values of headers, ready to be set
	levelID  []string
	most     int // seats for one request
	metrics  *metrics
	found    atomic.Pointer[meters]
}

// meters are those of the schema. They are made at the first request, so that
// unused schemas have no metrics.
func (s *schema) meters() *meters {
	if m := s.found.Load(); m != nil {
		return m
	}
	m := s.metrics.of(s.name, s.level.name)
	s.found.Store(m)
	return m
}

// table is all schemas in the order in which they are tried. It is immutable: a
// change of configuration makes a new one.
type table struct {
	schemas []*schema
	levels  []*level // by name
	// last is for requests that no schema matches.
	last *schema
}

// seed makes hashes unpredictable, so that clients can't choose names that
// collide.
var seed = maphash.MakeSeed()

// find returns the first schema that matches.
func (t *table) find(user *request.User, info *request.Info) *schema {
	for _, s := range t.schemas {
		for i := range s.rules {
			if s.rules[i].matches(user, info) {
				return s
			}
		}
	}
	return t.last
}

// flow is the hash of the flow that a request belongs to.
func (s *schema) flow(user *request.User, info *request.Info) uint64 {
	switch s.by {
	case flowcontrolv1.FlowDistinguisherMethodByUserType:
		return maphash.String(seed, user.Username) ^ s.seed
	case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		return maphash.String(seed, info.Namespace) ^ s.seed
	}
	return s.seed
}

// inOrder sorts schemas as they are tried: by precedence, and among equals by
// name.
func inOrder(schemas []*flowcontrolv1.FlowSchema) {
	slices.SortFunc(schemas, func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), cmp.Compare(a.Name, b.Name))
	})
}

// tie makes a schema from a stored one.
func tie(from *flowcontrolv1.FlowSchema, to *level, levelID string) *schema {
	s := &schema{
		name: from.Name, level: to, seed: maphash.String(seed, from.Name),
		schemaID: []string{string(from.UID)}, levelID: []string{levelID},
	}
	if m := from.Spec.DistinguisherMethod; m != nil {
		s.by = m.Type
	}
	for i := range from.Spec.Rules {
		s.rules = append(s.rules, compile(&from.Spec.Rules[i]))
	}
	return s
}
