package cgroup

import (
	"strings"
	"testing"

	"github.com/opencontainers/cgroups/systemd"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const uid = "1b3c-22-f"

func podOfClass(class corev1.PodQOSClass) string {
	pod := podOf(uid)
	pod.Status.QOSClass = class
	return podGroup(pod)
}

func TestSlices(t *testing.T) {
	for _, c := range []struct{ root, group, name, parent string }{
		{"/", "", "-.slice", "-.slice"},
		{"/", podsGroup, "kubepods.slice", "-.slice"},
		{"/", podsGroup + "/" + burstableGroup, "kubepods-burstable.slice", "kubepods.slice"},
		{"/", podOfClass(corev1.PodQOSGuaranteed), "kubepods-pod1b3c_22_f.slice", "kubepods.slice"},
		{"/", podOfClass(corev1.PodQOSBurstable), "kubepods-burstable-pod1b3c_22_f.slice", "kubepods-burstable.slice"},
		{"/", podOfClass(corev1.PodQOSBestEffort), "kubepods-besteffort-pod1b3c_22_f.slice", "kubepods-besteffort.slice"},
		{"/my-node/x", podsGroup, "my_node-x-kubepods.slice", "my_node-x.slice"},
		{"/a.slice/a-b_c.slice", podsGroup, "a-b_c-kubepods.slice", "a-b_c.slice"},
		{"/-.slice", podsGroup, "kubepods.slice", "-.slice"},
	} {
		n, err := systemdNaming(c.root)
		if err != nil {
			t.Errorf("%s: %v", c.root, err)
			continue
		}
		if got := n.name(c.group); got != c.name {
			t.Errorf("%s in %s is %s, want %s", c.group, c.root, got, c.name)
		}
		if c.group == "" {
			continue
		}
		place := n.place(c.group, nil)
		if place.Name != c.name || place.Parent != c.parent || !place.Systemd || place.Path != "" {
			t.Errorf("%s in %s is %s in %s, want %s in %s", c.group, c.root, place.Name, place.Parent, c.name, c.parent)
		}
		above, err := systemd.ExpandSlice(place.Parent)
		if err != nil {
			t.Error(err)
		}
		if at, err := systemd.ExpandSlice(place.Name); err != nil || at != strings.TrimSuffix(above, "/")+"/"+place.Name {
			t.Errorf("%s is at %s, its parent at %s: %v", place.Name, at, above, err)
		}
	}
	for _, root := range []string{"/.slice", "/a--b.slice", "/-a.slice"} {
		if _, err := systemdNaming(root); err == nil || !strings.Contains(err.Error(), root) {
			t.Errorf("%s: %v", root, err)
		}
	}
}

// TestPodOfGroup gets the pods back from the names of their groups.
func TestPodOfGroup(t *testing.T) {
	slices, err := systemdNaming("/my-node")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []naming{{root: "/my-node"}, slices} {
		for _, class := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
			group := podOfClass(class)
			above, directory := group[:strings.LastIndexByte(group, '/')], n.name(group)
			directory = directory[strings.LastIndexByte(directory, '/')+1:]
			if got, ok := n.pod(above, directory); !ok || got != uid {
				t.Errorf("%s in %s is of %q, %t", directory, above, got, ok)
			}
		}
	}
	for _, other := range []string{
		"my_node-kubepods-burstable.slice", "my_node-kubepods-pod.slice", "my_node-kubepods-podx", "kubepods-podx.slice",
		"my_node-kubepods-podx.scope", "cri-containerd-1.scope", "podx",
	} {
		if got, ok := slices.pod(podsGroup, other); ok {
			t.Errorf("%s is taken for the group of %q", other, got)
		}
	}
	if err := slices.holds(types.UID("a_b")); err == nil || !strings.Contains(err.Error(), `"a_b"`) {
		t.Errorf("a UID that could be another's: %v", err)
	}
}
