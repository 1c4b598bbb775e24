package profile

import (
	"testing"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/volumes"
)

// A profile may disable PreFilter of plugins whose Filter it keeps. What such a Filter
// can't find out by itself, it must not take for granted.
func TestFiltersThatNeedTheirPreFilterFailWithoutIt(t *testing.T) {
	c, err := parse([]byte(header + `profiles: [{plugins: {preFilter: {disabled: [{name: "*"}]}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := c.Build(Services{Volumes: volumes.NewKnown()})
	if err != nil {
		t.Fatal(err)
	}
	p := profiles["default-scheduler"]
	fails := map[string]bool{
		"InterPodAffinity": true, "PodTopologySpread": true, "VolumeBinding": true, "VolumeRestrictions": true, "NodeDeclaredFeatures": true,
	}
	pod, node := framework.NewPodInfo(fixture.Pod("p")), fixture.NodeInfo(fixture.Node("n"))
	for _, plugin := range p.Filter {
		status := framework.RunFilters(t.Context(), []framework.Filter{plugin}, framework.NewCycleState(nil), pod, node)
		if failed := status.Code() == framework.Error; failed != fails[plugin.Name()] || !failed && !status.IsSuccess() {
			t.Errorf("%s: %v %v", plugin.Name(), status.Code(), status.Reasons())
		}
		delete(fails, plugin.Name())
	}
	if len(fails) > 0 {
		t.Errorf("no Filter of %v", fails)
	}
}
