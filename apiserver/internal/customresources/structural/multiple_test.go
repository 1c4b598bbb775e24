package structural

import "testing"

// TestMultiples: what kube-apiserver v1.37.2 takes for multiples, but for whole
// numbers of a fraction: it cuts the fraction to a whole number, and takes 4, but
// not 5, for a multiple of 2.5.
func TestMultiples(t *testing.T) {
	for _, c := range []struct {
		value any
		of    float64
		want  bool
	}{
		{0.3, 0.1, true}, {1.1, 0.1, true}, {0.35, 0.1, false}, {0.0, 0.1, true}, {2.5, 2.5, true}, {7.5, 2.5, true}, {7.4, 2.5, false}, {1e-12, 1, false},
		{int64(6), 3, true}, {int64(7), 3, false}, {int64(9007199254740993), 2, false}, {int64(9007199254740994), 2, true}, {int64(5), 2.5, true},
		{int64(4), 2.5, false},
	} {
		v, ok := c.value.(float64)
		if !ok {
			v = float64(c.value.(int64))
		}
		if got := isMultiple(c.value, v, c.of); got != c.want {
			t.Errorf("%v of %v: %t", c.value, c.of, got)
		}
	}
}
