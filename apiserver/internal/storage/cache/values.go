package cache

import (
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// fewValues is up to how many values of a requirement labels.Selector compares one after
// the other. A URL has room for more than 100,000, and each object of a list, or each
// change for a watcher, is compared.
const fewValues = 16

// NewSelection makes a selection that stays fast, and small, however many values a
// requirement of the labels has.
func NewSelection(prefix string, byLabels labels.Selector, byFields fields.Selector) Selection {
	s := Selection{Prefix: prefix, Labels: byLabels, Fields: byFields}
	if byLabels == nil {
		return s
	}
	requirements, selects := byLabels.Requirements()
	if !selects || !slices.ContainsFunc(requirements, hasMany) {
		return s
	}
	var few labels.Requirements
	for _, r := range requirements {
		if hasMany(r) {
			s.many = append(s.many, newManyValues(r))
		} else {
			few = append(few, r)
		}
	}
	s.Labels = labels.NewSelector().Add(few...) // at once: each Add copies and sorts what is there
	return s
}

func hasMany(r labels.Requirement) bool {
	switch r.Operator() {
	case selection.In, selection.NotIn:
		return len(r.ValuesUnsorted()) > fewValues
	}
	return false
}

// manyValues is the requirement that a label has one of many values, or none of them. The
// values are sorted and stand one after the other in one text, in which they end at ends.
type manyValues struct {
	key  string
	in   bool
	text string
	ends []uint32
}

func newManyValues(r labels.Requirement) manyValues {
	values := r.ValuesUnsorted()
	slices.Sort(values)
	m := manyValues{key: r.Key(), in: r.Operator() == selection.In, text: strings.Join(values, ""), ends: make([]uint32, len(values))}
	end := 0
	for i, value := range values {
		end += len(value)
		m.ends[i] = uint32(end)
	}
	return m
}

func (m *manyValues) matches(of pairs) bool {
	value, exists := of.Lookup(m.key)
	return (exists && m.has(value)) == m.in
}

func (m *manyValues) has(value string) bool {
	i := sort.Search(len(m.ends), func(i int) bool { return m.at(i) >= value })
	return i < len(m.ends) && m.at(i) == value
}

func (m *manyValues) at(i int) string {
	start := uint32(0)
	if i > 0 {
		start = m.ends[i-1]
	}
	return m.text[start:m.ends[i]]
}
