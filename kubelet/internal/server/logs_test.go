package server

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

func TestLoggedContainer(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	terminated := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, c := range []struct {
		name        string
		state, last corev1.ContainerState
		previous    bool
		id, err     string
	}{
		{"running", running, corev1.ContainerState{}, false, "now", ""},
		{"running, before", running, terminated("r://last"), true, "last", ""},
		{"running, nothing before", running, corev1.ContainerState{}, true, "", `previous terminated container "c" in pod "p" not found`},
		{"terminated", terminated("r://gone"), terminated("r://last"), false, "gone", ""},
		{"terminated without an id", terminated(""), terminated("r://last"), false, "last", ""},
		{"terminated, never ran", terminated(""), corev1.ContainerState{}, false, "", `container "c" in pod "p" is terminated`},
		{"crash loop", waiting("CrashLoopBackOff"), terminated("r://last"), false, "last", ""},
		{"creating", waiting("ContainerCreating"), corev1.ContainerState{}, false, "", `container "c" in pod "p" is waiting to start: ContainerCreating`},
		{"pulling fails", waiting("ErrImagePull"), corev1.ContainerState{}, false, "", `container "c" in pod "p" is waiting to start: image can't be pulled`},
		{"pulling backs off", waiting("ImagePullBackOff"), corev1.ContainerState{}, false, "",
			`container "c" in pod "p" is waiting to start: trying and failing to pull image`},
		{"nothing known", corev1.ContainerState{}, corev1.ContainerState{}, false, "", `container "c" in pod "p" is waiting to start: no logs available yet`},
	} {
		status := &core.PodStatus{InitContainerStatuses: []core.ContainerStatus{{Name: "c", ContainerID: "r://now", State: c.state, LastTerminationState: c.last}}}
		id, err := loggedContainer("p", "c", status, c.previous)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if id != c.id || text != c.err {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, id, text, c.id, c.err)
		}
	}
	if _, err := loggedContainer("p", "c", &core.PodStatus{}, false); err == nil || err.Error() != `container "c" in pod "p" is not available` {
		t.Errorf("no status: %v", err)
	}
}

// A followed log arrives line by line, and ends with the container.
func TestLogsFollow(t *testing.T) {
	n, server := newNode(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/containerLogs/ns/p/c?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v; want %q", lines.Text(), lines.Err(), want)
		}
	}
	expect("one")
	expect("two")
	file, err := os.OpenFile(n.logPath, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for i := range 3 {
		if _, err := fmt.Fprintf(file, "2026-11-21T09:00:02Z stdout F more %d\n", i); err != nil {
			t.Fatal(err)
		}
		expect(fmt.Sprintf("more %d", i))
	}
	n.mu.Lock()
	n.running = false
	n.mu.Unlock()
	if lines.Scan() {
		t.Errorf("after the end: %q", lines.Text())
	}
}
