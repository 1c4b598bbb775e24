package cgroup

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/systemd"
	"k8s.io/apimachinery/pkg/types"
)

// Drivers, as a KubeletConfiguration names them: who makes groups.
const (
	Cgroupfs = "cgroupfs" // the kubelet, as directories
	Systemd  = "systemd"  // systemd, as slices
)

const (
	sliceSuffix = ".slice"
	rootSlice   = "-.slice" // that all others are in
)

// naming is how a driver names groups. Groups are given as paths below the
// root: kubepods/burstable/podUID.
type naming struct {
	systemd bool
	root    string // a path, or of systemd the name of a slice without its suffix
}

func newNaming(driver, root string) (naming, error) {
	root = path.Join("/", root)
	switch driver {
	case "", Cgroupfs:
		return naming{root: root}, nil
	case Systemd:
	default:
		return naming{}, fmt.Errorf("cgroup driver %q is not supported: use %s or %s", driver, Cgroupfs, Systemd)
	}
	if !systemd.IsRunningSystemd() {
		return naming{},
			errors.New("cgroup driver systemd: this machine does not run systemd; the kubelet and the container runtime must " +
				"both use the driver cgroupfs")
	}
	return systemdNaming(root)
}

// systemdNaming has slices below a root that is a path as of cgroupfs, or that
// of a slice.
func systemdNaming(root string) (naming, error) {
	name := path.Base(root)
	if !strings.HasSuffix(name, sliceSuffix) {
		name = naming{systemd: true, root: slice("", root)}.name("")
	}
	if _, err := systemd.ExpandSlice(name); err != nil {
		return naming{}, fmt.Errorf("the root of control groups, %s, can't be a slice of systemd's: %w", root, err)
	}
	if name == rootSlice {
		return naming{systemd: true}, nil
	}
	return naming{systemd: true, root: strings.TrimSuffix(name, sliceSuffix)}, nil
}

// slice is the name of a group below another slice, both without suffix.
// Hyphens in a name nest slices, so a group's own hyphens become underscores.
func slice(above, group string) string {
	for part := range strings.SplitSeq(group, "/") {
		if part == "" {
			continue
		}
		if above != "" {
			above += "-"
		}
		above += strings.ReplaceAll(part, "-", "_")
	}
	return above
}

// name is a group's name in the form for the container runtime.
func (n naming) name(group string) string {
	if !n.systemd {
		return path.Join(n.root, group)
	}
	name := slice(n.root, group)
	if name == "" {
		return rootSlice
	}
	return name + sliceSuffix
}

// place is where a group is, with the limits that it is to have.
func (n naming) place(group string, r *cgroups.Resources) *cgroups.Cgroup {
	name := n.name(group)
	if !n.systemd {
		return &cgroups.Cgroup{Path: name, Resources: r}
	}
	above := rootSlice
	if last := strings.LastIndexByte(name, '-'); last > 0 {
		above = name[:last] + sliceSuffix
	}
	return &cgroups.Cgroup{Name: name, Parent: above, Systemd: true, Resources: r}
}

// pod is the pod whose group is the given directory in the group above.
func (n naming) pod(above, directory string) (types.UID, bool) {
	if !n.systemd {
		uid, ok := strings.CutPrefix(directory, podPrefix)
		return types.UID(uid), ok && uid != ""
	}
	name, isSlice := strings.CutSuffix(directory, sliceSuffix)
	uid, ok := strings.CutPrefix(name, slice(n.root, above)+"-"+podPrefix)
	return types.UID(strings.ReplaceAll(uid, "_", "-")), ok && isSlice && uid != ""
}

// holds says why a pod's UID can't be derived from its group's name.
func (n naming) holds(uid types.UID) error {
	if n.systemd && strings.Contains(string(uid), "_") {
		return fmt.Errorf("the UID %q has an underscore, which names of systemd's slices can't tell from a hyphen", uid)
	}
	return nil
}
