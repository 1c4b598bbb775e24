package nodename

import (
	"testing"

	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

func TestFilter(t *testing.T) {
	for _, test := range []struct {
		wants string
		fits  bool
	}{{"", true}, {"n1", true}, {"n2", false}} {
		status := plugintest.Filter(t.Context(), New(), fixture.Pod("p", fixture.On(test.wants)), fixture.NodeInfo(fixture.Node("n1")))
		if status.IsSuccess() != test.fits {
			t.Errorf("pod for %q on n1: %v", test.wants, status.Reasons())
		}
	}
}
