package cycle

import "testing"

func TestNumFeasibleNodesToFind(t *testing.T) {
	for _, test := range []struct {
		nodes      int
		percentage int32
		want       int
	}{
		{1, 0, 1}, {99, 0, 99}, {100, 0, 100}, {150, 10, 100}, {1000, 0, 420}, {5000, 0, 500}, {15000, 0, 750}, {1000, 100, 1000}, {5000, 40, 2000},
	} {
		if got := numFeasibleNodesToFind(test.nodes, test.percentage); got != test.want {
			t.Errorf("%d nodes at %d%%: %d, want %d", test.nodes, test.percentage, got, test.want)
		}
	}
}
