package podtolerationrestriction

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// merge appends second to first, leaving out tolerations that another one covers: that
// tolerates everything that they do, for at least as long. Of two that cover each other
// the first stays.
func merge(first, second []corev1.Toleration) []corev1.Toleration {
	all := slices.Concat(first, second)
	longest, kept := newIndex(all), map[shape]bool{}
	var out []corev1.Toleration
	for i := range all {
		one := &all[i]
		own := shapeOf(one)
		// Only those of the same shape may cover each other.
		if longest.coversWider(one) || !lasts(one, longest[own]) || kept[own] {
			continue
		}
		kept[own] = true
		out = append(out, *one)
	}
	return out
}

// shape is what a toleration matches.
type shape struct {
	key      string
	operator corev1.TolerationOperator
	value    string // none with Exists
	effect   corev1.TaintEffect
}

func shapeOf(t *corev1.Toleration) shape {
	if t.Operator == corev1.TolerationOpExists {
		return shape{key: t.Key, operator: t.Operator, effect: t.Effect}
	}
	return shape{key: t.Key, operator: cmp.Or(t.Operator, corev1.TolerationOpEqual), value: t.Value, effect: t.Effect}
}

// wider are the shapes that match everything that s does, and more perhaps; s is the first.
func (s shape) wider() []shape {
	out := []shape{s}
	if s.operator != corev1.TolerationOpExists {
		out = append(out, shape{key: s.key, operator: corev1.TolerationOpExists, effect: s.effect})
	}
	if s.key != "" {
		out = append(out, shape{operator: corev1.TolerationOpExists, effect: s.effect})
	}
	if s.effect != "" {
		for _, one := range out {
			one.effect = ""
			out = append(out, one)
		}
	}
	return out
}

// index holds the toleration of each shape that lasts longest. It is there because pods may
// have tens of thousands, of which each would have to be compared with each.
type index map[shape]*corev1.Toleration

func newIndex(all []corev1.Toleration) index {
	x := make(index, len(all))
	for i := range all {
		s := shapeOf(&all[i])
		if have := x[s]; have == nil || !lasts(have, &all[i]) {
			x[s] = &all[i]
		}
	}
	return x
}

// lasts reports whether a toleration holds at least as long as another one.
func lasts(one, other *corev1.Toleration) bool {
	if one.TolerationSeconds == nil {
		return true
	}
	return other.TolerationSeconds != nil && *one.TolerationSeconds >= *other.TolerationSeconds
}

// covers reports whether one toleration in the index covers another one.
func (x index) covers(one *corev1.Toleration) bool {
	return x.coveredBy(one, shapeOf(one).wider())
}

// coversWider is covers by those of other shapes.
func (x index) coversWider(one *corev1.Toleration) bool {
	return x.coveredBy(one, shapeOf(one).wider()[1:])
}

func (x index) coveredBy(one *corev1.Toleration, shapes []shape) bool {
	return slices.ContainsFunc(shapes, func(s shape) bool { return x[s] != nil && lasts(x[s], one) })
}
