package eviction

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/filesystem"
	"kctl/proto/core"
	"kctl/proto/mountinfo"
)

// Usage is what a pod uses of the node.
type Usage struct {
	Memory     int64 // bytes that can't be reclaimed without ending it
	Disk       int64 // bytes of volumes, logs and what containers wrote
	Inodes     int64 // of the same
	Layer      Layer // the part of both that containers wrote outside of volumes and logs
	Processes  int64
	Containers map[string]Share  // by name
	Volumes    map[string]Volume // those in directories of their own, by name
}

// Layer is what containers wrote, where the runtime keeps images.
type Layer struct{ Bytes, Inodes int64 }

// Volume is what one volume uses of its file system; for a claimed volume,
// everything that is used there.
type Volume struct {
	Dir           string
	Claim         string // its name; "" for the pod's own
	Bytes, Inodes int64
}

// Share is what one container uses.
type Share struct {
	Memory, Disk    int64
	Logs, LogInodes int64 // of Disk
}

// Meter measures what pods use.
type Meter struct {
	// Stats are the runtime's of all containers.
	Stats func(ctx context.Context) ([]*runtimeapi.ContainerStats, error)
	// VolumeDir is where a pod's volume is, "" for those that have no directory of
	// their own; LogDir is where its logs are.
	VolumeDir func(pod *core.Pod, volume *corev1.Volume) string
	LogDir    func(pod *core.Pod) string
	// HostsFile is what a pod has mounted as /etc/hosts, and MessageDir where a
	// container's termination messages are: its containers may write there.
	HostsFile  func(pod *core.Pod) string
	MessageDir func(pod *core.Pod, container string) string
	Processes  func(pod *core.Pod) int
}

// statsWithin is how long the runtime may take to say what all containers use: meanwhile nobody
// looks at the node.
const statsWithin = 30 * time.Second

// Measure measures pods. Walking through their files is expensive, and is done only if asked
// for. If something can't be walked through, the rest counts, and the error says what could
// not; without the runtime's figures there is no result.
func (m Meter) Measure(ctx context.Context, pods []*core.Pod, disk bool) (map[types.UID]*Usage, error) {
	asking, cancel := context.WithTimeout(ctx, statsWithin)
	defer cancel()
	stats, err := m.Stats(asking)
	if err != nil {
		return nil, fmt.Errorf("what containers use: %w", err)
	}
	usages := map[types.UID]*Usage{}
	for _, pod := range pods {
		usages[pod.UID] = &Usage{Processes: int64(m.Processes(pod)), Containers: map[string]Share{}, Volumes: map[string]Volume{}}
	}
	for _, one := range stats {
		labels := one.GetAttributes().GetLabels()
		if usage := usages[types.UID(labels[kubelettypes.KubernetesPodUIDLabel])]; usage != nil {
			usage.addContainer(labels[kubelettypes.KubernetesContainerNameLabel], one)
		}
	}
	if !disk {
		return usages, nil
	}
	mounts, err := mountinfo.Read()
	unknown := []error{err}
	for _, pod := range pods {
		if err := m.measureDisk(ctx, pod, usages[pod.UID], mounts); err != nil {
			unknown = append(unknown, fmt.Errorf("disk of pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return usages, errors.Join(unknown...)
}

// addContainer adds the runtime's figures for a container; a restarted one may
// be there twice.
func (u *Usage) addContainer(name string, stats *runtimeapi.ContainerStats) {
	memory := figure(stats.GetMemory().GetWorkingSetBytes())
	layer := stats.GetWritableLayer()
	written, inodes := figure(layer.GetUsedBytes()), figure(layer.GetInodesUsed())
	u.Memory += memory
	u.add(written, inodes)
	u.Layer.Bytes += written
	u.Layer.Inodes += inodes
	before := u.Containers[name]
	u.Containers[name] = Share{Memory: before.Memory + memory, Disk: before.Disk + written}
}

// mostOfOne is more than a container can use: a pod with a figure beyond it, which is
// nonsense, would be taken for one that uses less than nothing.
const mostOfOne = 1 << 50

func figure(told *runtimeapi.UInt64Value) int64 { return int64(min(told.GetValue(), mostOfOne)) }

func (m Meter) measureDisk(ctx context.Context, pod *core.Pod, usage *Usage, mounts mountinfo.Table) error {
	var unknown []error
	measure := func(dir string, itself bool) (bytes, inodes int64) {
		bytes, inodes, err := walk(ctx, dir, itself, mounts)
		unknown = append(unknown, err)
		return bytes, inodes
	}
	for i := range pod.Spec.Volumes {
		unknown = append(unknown, m.measureVolume(ctx, pod, &pod.Spec.Volumes[i], usage, mounts))
	}
	logs := m.LogDir(pod)
	usage.add(measure(logs, true))
	var hosts unix.Stat_t
	if err := unix.Lstat(m.HostsFile(pod), &hosts); err == nil {
		usage.add(hosts.Blocks*512, 1)
	} else {
		unknown = append(unknown, ignoreGone(err))
	}
	for name, share := range usage.Containers {
		share.Logs, share.LogInodes = measure(filepath.Join(logs, name), false) // as upstream counts them
		bytes, inodes := measure(m.MessageDir(pod, name), false)
		share.Disk += share.Logs + bytes
		usage.add(bytes, inodes)
		usage.Containers[name] = share
	}
	return errors.Join(unknown...)
}

// add counts what the pod has on the node's disk.
func (u *Usage) add(bytes, inodes int64) {
	u.Disk += bytes
	u.Inodes += inodes
}

// measureVolume measures a volume with a directory of its own, also if only a part of it
// can be walked through.
func (m Meter) measureVolume(ctx context.Context, pod *core.Pod, v *corev1.Volume, usage *Usage, mounts mountinfo.Table) error {
	dir := m.VolumeDir(pod, v)
	if dir == "" {
		return nil
	}
	if name := core.ClaimName(pod, v); name != "" {
		disk, err := filesystem.Of(dir)
		if err != nil {
			return fmt.Errorf("looking at volume %q: %w", v.Name, err)
		}
		usage.Volumes[v.Name] = Volume{dir, name, int64(disk.Used), int64(disk.InodesUsed())}
		return nil
	}
	bytes, inodes, err := walk(ctx, dir, true, mounts)
	if inodes == 0 {
		return err // nothing is there: no container has it mounted
	}
	usage.Volumes[v.Name] = Volume{dir, "", bytes, inodes}
	if onDisk(v) || v.ConfigMap != nil {
		usage.add(bytes, inodes)
	}
	return err
}

// onDisk says that the volume's content is the pod's own, and on the node's
// disk.
func onDisk(v *corev1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
}
