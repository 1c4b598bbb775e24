package runtimestate

import (
	"slices"
	"testing"
	"time"
)

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
	if old.Succeeded() || now.Succeeded() {
		t.Error("neither an exit with code 1 nor running is a success")
	}
}

// The machine's clock was set back by an hour between two containers a, and
// between the sandboxes: what came later is still the newer one.
func TestNewestFirstWhenTheClockWasSetBack(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	made := func(name string, restarts int32, minute int) *ContainerStatus {
		return &ContainerStatus{Name: name, RestartCount: restarts, CreatedAt: start.Add(time.Duration(minute) * time.Minute)}
	}
	s := &PodStatus{
		Containers: []*ContainerStatus{made("a", 0, 60), made("b", 0, 30), made("a", 2, 5), made("a", 1, 0), made("c", 0, 70), made("b", 1, 80)},
		Sandboxes:  []*SandboxStatus{{Attempt: 0, CreatedAt: start.Add(time.Hour)}, {Attempt: 1, CreatedAt: start, Ready: true, IPs: []string{"10.0.0.1"}}},
	}
	s.Sort()
	want := []creation{{"b", 1, start.Add(80 * time.Minute)}, {"c", 0, start.Add(70 * time.Minute)}, {"a", 2, start.Add(5 * time.Minute)}, {"a", 1, start},
		{"a", 0, start.Add(time.Hour)}, {"b", 0, start.Add(30 * time.Minute)}}
	var got []creation
	for _, c := range s.Containers {
		got = append(got, c.creation())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if box := s.ReadySandbox(); box == nil || box.Attempt != 1 || !slices.Equal(s.IPs, box.IPs) {
		t.Errorf("the newest sandbox is %+v, with the addresses %v", s.Sandboxes[0], s.IPs)
	}
	short := s.RunningPod("test")
	slices.Reverse(short.Sandboxes)
	newestFirst(short.Sandboxes, (*RunningContainer).creation)
	if short.Sandboxes[0].State != StateRunning {
		t.Errorf("of the short view the newest sandbox is %+v", short.Sandboxes[0])
	}
}
