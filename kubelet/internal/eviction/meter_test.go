package eviction

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/filesystem"
	"kctl/kubelet/internal/filesystem/filesystemtest"
	"kctl/proto/core"
)

func TestMeter(t *testing.T) {
	dir := t.TempDir()
	write := func(path string, size int) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "p", "scratch", "file"), 1<<20)
	if err := os.Link(filepath.Join(dir, "p", "scratch", "file"), filepath.Join(dir, "p", "scratch", "again")); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "p", "ram", "file"), 32<<20)
	write(filepath.Join(dir, "p", "settings", "key"), 1<<20)
	write(filepath.Join(dir, "logs", "p", "main", "0.log"), 64<<10)
	write(filepath.Join(dir, "messages", "main", "0"), 4<<20)
	write(filepath.Join(dir, "hosts"), 8<<20)
	labels := map[string]string{"io.kubernetes.pod.uid": "p", "io.kubernetes.container.name": "main"}
	meter := Meter{
		Stats: func(context.Context) ([]*runtimeapi.ContainerStats, error) {
			return []*runtimeapi.ContainerStats{{
				Attributes:    &runtimeapi.ContainerAttributes{Labels: labels},
				Memory:        &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: 7}},
				WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: 2 << 20}, InodesUsed: &runtimeapi.UInt64Value{Value: 5}},
			}, {Attributes: &runtimeapi.ContainerAttributes{Labels: map[string]string{"io.kubernetes.pod.uid": "another"}}}, {
				Attributes:    &runtimeapi.ContainerAttributes{Labels: map[string]string{"io.kubernetes.pod.uid": "nonsense"}},
				Memory:        &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: math.MaxUint64}},
				WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: math.MaxInt64}},
			}}, nil
		},
		VolumeDir: func(pod *core.Pod, volume *corev1.Volume) string {
			if volume.HostPath != nil {
				return ""
			}
			if volume.PersistentVolumeClaim != nil {
				return "/proc/self" // a file system that is always empty
			}
			return filepath.Join(dir, string(pod.UID), volume.Name)
		},
		LogDir:     func(pod *core.Pod) string { return filepath.Join(dir, "logs", string(pod.UID)) },
		HostsFile:  func(*core.Pod) string { return filepath.Join(dir, "hosts") },
		MessageDir: func(_ *core.Pod, c string) string { return filepath.Join(dir, "messages", c) },
		Processes:  func(*core.Pod) int { return 3 },
	}
	pod := newPod("p", 0, "", "")
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "ram", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
		{Name: "claimed", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "not-made-yet", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	usages, err := meter.Measure(t.Context(), []*core.Pod{pod, newPod("nonsense", 0, "", "")}, true)
	if err != nil {
		t.Fatal(err)
	}
	if layer := usages["p"].Layer; layer != (Layer{Bytes: 2 << 20, Inodes: 5}) {
		t.Errorf("written by its container: %+v", layer)
	}
	if u := usages["nonsense"]; u.Memory < 1<<40 || u.Disk < 1<<40 {
		t.Errorf("a pod that uses more than there is: %+v", u)
	}
	u := usages["p"]
	// Directories take a few blocks, depending on the file system.
	if scratch := u.Volumes["scratch"]; u.Memory != 7 || u.Processes != 3 || scratch.Bytes < 1<<20 || scratch.Bytes > 1<<20+256<<10 || scratch.Inodes != 2 {
		t.Errorf("%+v", u)
	}
	if claimed := u.Volumes["claimed"]; claimed != (Volume{Dir: "/proc/self", Claim: "data"}) {
		t.Errorf("claimed: %+v", claimed)
	}
	if len(u.Volumes) != 4 || u.Volumes["ram"].Bytes < 32<<20 || u.Volumes["settings"].Inodes != 2 ||
		u.Volumes["settings"].Dir != filepath.Join(dir, "p", "settings") {
		t.Errorf("volumes %+v", u.Volumes)
	}
	if main := u.Containers["main"]; main.Memory != 7 || main.Disk < 6<<20+64<<10 || main.Disk > 6<<20+512<<10 {
		t.Errorf("%+v", main)
	}
	if u.Disk < 16<<20+64<<10 || u.Disk > 17<<20 || u.Inodes < 9 { // what is in memory does not count as disk
		t.Errorf("%+v", u)
	}
}

func TestMachine(t *testing.T) {
	dir := t.TempDir()
	machine := Machine{
		RootDir:    dir,
		Memory:     func() (int64, int64, error) { return 1, 2, nil },
		PodsMemory: func() (int64, int64, error) { return 1, 1, nil },
		Processes:  func() (uint64, uint64) { return 70_000, 100_000 },
		ImageFS: func(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
			return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: dir}}}}, nil
		},
	}
	seen, err := machine.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range signals {
		o, ok := seen[signal]
		if !ok && strings.Contains(string(signal), "inodes") {
			continue // the file system does not count inodes
		}
		if o.Available <= 0 || o.Available > o.Capacity {
			t.Errorf("%s: %+v", signal, o)
		}
	}
	if o := seen[PIDAvailable]; o != (Observation{Available: 30_000, Capacity: 100_000}) {
		t.Errorf("processes: %+v", o)
	}
	for signal, o := range seen {
		if o.Apart != (Apart{}) {
			t.Errorf("%s: one disk is taken for two", signal)
		}
	}
	images := "/proc/self" // stands for another disk
	machine.ImageFS = func(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
		return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: images}}}}, nil
	}
	two, err := machine.Observe(t.Context())
	if err != nil || two[NodeFSAvailable].Apart != (Apart{true, true}) || two[ImageFSAvailable].Apart != (Apart{true, true}) ||
		two[MemoryAvailable].Apart != (Apart{}) {
		t.Errorf("two disks: %+v, %v", two, err)
	}
	machine.ImageFS = func(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
		of := func(dir string) []*runtimeapi.FilesystemUsage {
			return []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: dir}}}
		}
		return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: of("/proc/self"), ContainerFilesystems: of(dir)}, nil
	}
	if images, err := machine.Observe(t.Context()); err != nil || images[NodeFSAvailable].Apart != (Apart{Images: true}) ||
		images[ImageFSAvailable].Apart != (Apart{Images: true}) {
		t.Errorf("only images are on another disk: %+v, %v", images, err)
	}
	images = t.TempDir()
	filesystemtest.MountSilent(t, images)
	machine.PodsMemory = func() (int64, int64, error) { return 0, 0, errors.New("no group") }
	machine.ImageFS = func(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
		return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: images}}}}, nil
	}
	some, err := machine.Observe(t.Context())
	if !errors.Is(err, filesystem.ErrSilent) || !strings.Contains(err.Error(), images) || !strings.Contains(err.Error(), "no group") {
		t.Errorf("error %v", err)
	}
	for signal, o := range seen {
		got, known := some[signal]
		if want := signal != ImageFSAvailable && signal != ImageFSInodesFree && signal != PodsMemoryAvailable; known != want || known && got.Capacity != o.Capacity {
			t.Errorf("%s: %+v, %v", signal, got, known)
		}
	}
}
