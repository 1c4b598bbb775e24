package podtolerationrestriction

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestMergeComparesAll: looking tolerations up has the result of comparing each with each.
func TestMergeComparesAll(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(n int) (out []corev1.Toleration) {
		for range r.IntN(n) {
			one := corev1.Toleration{
				Key: pick("", "a", "b"), Operator: corev1.TolerationOperator(pick("Exists", "Equal", "", "Lt", "Gt")), Value: pick("", "x"),
				Effect: corev1.TaintEffect(pick("", "NoExecute", "odd")),
			}
			if r.IntN(2) == 0 {
				one.TolerationSeconds = new(r.Int64N(3))
			}
			out = append(out, one)
		}
		return out
	}
	for range 20000 {
		first, second := some(6), some(6)
		if got, want := merge(first, second), mergeOneByOne(slices.Concat(first, second)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v and %v: %v, want %v", first, second, got, want)
		}
		allowed := newIndex(second)
		for i := range first {
			want := slices.ContainsFunc(second, func(wide corev1.Toleration) bool { return covers(&wide, &first[i]) })
			if got := allowed.covers(&first[i]); got != want {
				t.Fatalf("%v by %v: %v", first[i], second, got)
			}
		}
	}
}

func mergeOneByOne(all []corev1.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for i := range all {
		covered := false
		for j := range all {
			// Of two that cover each other the first stays.
			covered = covered || i != j && covers(&all[j], &all[i]) && (j < i || !covers(&all[i], &all[j]))
		}
		if !covered {
			out = append(out, all[i])
		}
	}
	return out
}

// covers reports whether wide tolerates everything that narrow does, for at least as long.
func covers(wide, narrow *corev1.Toleration) bool {
	switch {
	case wide.Key != narrow.Key && (wide.Key != "" || wide.Operator != corev1.TolerationOpExists),
		wide.Effect != narrow.Effect && wide.Effect != "",
		wide.TolerationSeconds != nil && (narrow.TolerationSeconds == nil || *narrow.TolerationSeconds > *wide.TolerationSeconds):
		return false
	case wide.Operator == corev1.TolerationOpExists:
		return true
	}
	return cmp.Or(wide.Operator, corev1.TolerationOpEqual) == cmp.Or(narrow.Operator, corev1.TolerationOpEqual) && wide.Value == narrow.Value
}

// 30,000 are a pod of 1 MB.
func BenchmarkMerge(b *testing.B) {
	all := make([]corev1.Toleration, 30000)
	for i := range all {
		all[i] = corev1.Toleration{Key: "k", Value: fmt.Sprint(i), Effect: corev1.TaintEffectNoSchedule}
	}
	for b.Loop() {
		if len(merge(all, all[:1])) != len(all) {
			b.Fatal("they are different")
		}
	}
}
