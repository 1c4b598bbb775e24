package lifecycle

import (
	"testing"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// The mirror of a static pod may still show the pod that had its name and UID before.
func TestReportedOf(t *testing.T) {
	found := &runtimestate.PodStatus{Containers: []*runtimestate.ContainerStatus{
		{Name: "main", ID: runtimestate.ContainerID{Type: "r", ID: "2"}}, {Name: "main", ID: runtimestate.ContainerID{Type: "r", ID: "1"}},
	}}
	for what, c := range map[string]struct {
		id    string
		found *runtimestate.PodStatus
		want  bool
	}{
		"its container":          {"r://2", found, true},
		"an earlier one":         {"r://1", found, false},
		"another pod's":          {"r://3", found, false},
		"none yet":               {"", found, false},
		"nothing in the runtime": {"r://2", nil, false},
	} {
		reported := &core.PodStatus{ContainerStatuses: []core.ContainerStatus{{Name: "main", ContainerID: c.id}}}
		if got := reportedOf(reported, c.found); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	if reportedOf(&core.PodStatus{}, found) {
		t.Error("a status without containers is of some pod")
	}
}
