package cgroup

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	corev1 "k8s.io/api/core/v1"
)

// Groups are found without knowing the hierarchies beforehand.
func TestGroupsAreWhereTheyAreFound(t *testing.T) {
	m := newManager(t, Options{})
	for _, name := range []string{podsGroup, "kubepods/burstable/podx"} {
		r := &cgroups.Resources{SkipDevices: true}
		found, err := manager.New(m.naming.place(name, r))
		if err != nil {
			t.Fatal(err)
		}
		known, err := m.group(name, r)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(known.GetPaths(), found.GetPaths()) {
			t.Errorf("%s: %v, want %v", name, known.GetPaths(), found.GetPaths())
		}
	}
}

// A kubelet that starts finds leftovers in any hierarchy; what it could not
// remove itself, it finds later.
func TestPodsInSomeHierarchiesAreFound(t *testing.T) {
	m := newManager(t, Options{})
	above := dirs(m.Root + "/" + podsGroup)
	if err := os.Mkdir(filepath.Join(above[len(above)-1], "podold"), 0o755); err != nil {
		t.Fatal(err)
	}
	pods, err := m.Pods()
	if err != nil || len(pods) != 1 || pods["old"] != corev1.PodQOSGuaranteed {
		t.Fatalf("pods %v, %v", pods, err)
	}
	if err := m.Destroy("old", pods["old"]); err != nil {
		t.Fatal(err)
	}
	if err := m.Create(podOf("new")); err != nil {
		t.Fatal(err)
	}
	m.incomplete.note("half", corev1.PodQOSBurstable, errors.New("not all"))
	if pods, err := m.Pods(); err != nil || len(pods) != 2 || pods["new"] != corev1.PodQOSBestEffort || pods["half"] != corev1.PodQOSBurstable {
		t.Errorf("pods %v, %v", pods, err)
	}
	for _, uid := range []string{"new", "half"} {
		if err := m.Destroy(podOf(uid).UID, QOSClass(podOf(uid))); err != nil {
			t.Error(err)
		}
	}
	if pods, err := m.Pods(); err != nil || len(pods) != 0 {
		t.Errorf("pods %v, %v", pods, err)
	}
}
