package podruntime

import "testing"

func TestContainerIDRoundTrip(t *testing.T) {
	id := ContainerID{Type: "containerd", ID: "abc"}
	got, err := ParseContainerID(id.String())
	if err != nil || got != id {
		t.Fatalf("ParseContainerID(%q) = %v, %v", id.String(), got, err)
	}
	for _, bad := range []string{"", "abc", "containerd://", "://abc"} {
		if got, err := ParseContainerID(bad); err == nil {
			t.Errorf("ParseContainerID(%q) = %v, want an error", bad, got)
		}
	}
}

func TestPodStatusFindsNewestContainer(t *testing.T) {
	old := &ContainerStatus{ID: ContainerID{"c", "1"}, Name: "a", State: StateExited, ExitCode: 1}
	now := &ContainerStatus{ID: ContainerID{"c", "2"}, Name: "a", State: StateRunning}
	s := &PodStatus{Containers: []*ContainerStatus{now, old}}
	if got := s.Container("a"); got != now {
		t.Errorf("Container(a) = %v, want the newest", got)
	}
	if got := s.ContainerByID(old.ID); got != old {
		t.Errorf("ContainerByID(1) = %v", got)
	}
	if got := s.Container("b"); got != nil {
		t.Errorf("Container(b) = %v, want nil", got)
	}
	if !old.Failed() || old.Succeeded() || now.Failed() {
		t.Error("an exit with code 1 is a failure, running is none")
	}
}
