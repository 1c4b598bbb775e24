// Package emptydir makes directories that live as long as their pod, on the
// node's disk, in its memory or in its huge pages.
//
// Package volume calls it. It never looks at what a pod puts there, and never
// removes it: that happens for all of a pod's volumes at once.
package emptydir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// defaultMode makes the directory accessible to all users of the pod's containers.
const defaultMode = 0o777

// Unsupported names a medium that is not supported; "" if it is.
func Unsupported(source *corev1.EmptyDirVolumeSource) string {
	switch source.Medium {
	case corev1.StorageMediumDefault, corev1.StorageMediumMemory, corev1.StorageMediumHugePages:
		return ""
	}
	if _, sized := pageSize(string(source.Medium), string(corev1.StorageMediumHugePagesPrefix)); sized {
		return ""
	}
	return string(source.Medium)
}

// IsSetUp tells whether dir has been set up for the source and marked, by this kubelet or an earlier one:
// its owner and its mode are the pod's affair since then. The machine's restart has taken what was mounted.
func IsSetUp(dir, mark string, source *corev1.EmptyDirVolumeSource) (bool, error) {
	for _, needed := range []string{mark, dir} {
		if _, err := os.Lstat(needed); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	switch source.Medium {
	case corev1.StorageMediumDefault:
		return true, nil
	case corev1.StorageMediumMemory:
		return mount.IsTmpfs(dir)
	}
	return mount.IsHugePages(dir)
}

// SetUp sets up dir for the source. The pod's fsGroup owns it, and what is made
// in it.
func SetUp(dir string, pod *core.Pod, source *corev1.EmptyDirVolumeSource, allocatable corev1.ResourceList) error {
	if medium := Unsupported(source); medium != "" {
		return fmt.Errorf("emptyDir: the medium %s is not supported", medium)
	}
	mode := os.FileMode(defaultMode)
	if source.Medium == corev1.StorageMediumMemory {
		if err := mount.Tmpfs(dir, memoryLimit(pod, source, allocatable)); err != nil {
			return err
		}
		mode |= os.ModeSticky // as the kernel mounts them, and upstream leaves them
	} else if source.Medium != corev1.StorageMediumDefault {
		size, err := requestedPages(pod, source.Medium)
		if err != nil {
			return err
		}
		if err := mount.HugePages(dir, size); err != nil {
			return err
		}
	}
	if source.Mode != nil {
		mode = os.FileMode(*source.Mode).Perm()
		if *source.Mode&0o1000 != 0 {
			mode |= os.ModeSticky
		}
	}
	if security := pod.Spec.SecurityContext; security != nil && security.FSGroup != nil {
		if err := os.Chown(dir, -1, int(*security.FSGroup)); err != nil {
			return err
		}
		mode |= os.ModeSetgid | 0o770
	}
	return os.Chmod(dir, mode)
}

// pageSize reads a size of huge pages from a name that ends with it.
func pageSize(name, prefix string) (bytes int64, ok bool) {
	text, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	size, err := resource.ParseQuantity(text)
	return size.Value(), err == nil && size.Sign() > 0
}

// requestedPages is the size of the pages of a medium, of which the pod must request some: the
// one that the medium names, or else the only one.
func requestedPages(pod *core.Pod, medium corev1.StorageMedium) (int64, error) {
	wanted, sized := pageSize(string(medium), string(corev1.StorageMediumHugePagesPrefix))
	requests := []corev1.ResourceList{}
	if pod.Spec.Resources != nil {
		requests = append(requests, pod.Spec.Resources.Requests)
	}
	for c := range core.Containers(&pod.Spec) {
		requests = append(requests, c.Resources.Requests)
	}
	found := int64(0)
	for _, list := range requests {
		for name := range list {
			size, huge := pageSize(string(name), corev1.ResourceHugePagesPrefix)
			switch {
			case !huge, sized && size != wanted:
			case found != 0 && found != size:
				return 0, fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", medium)
			default:
				found = size
			}
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", medium)
	}
	return found, nil
}

// memoryLimit is how large a directory in memory may grow: what the node has
// for pods, what the pod's containers may use together if all of them are
// limited, and what the source says; the least of these.
func memoryLimit(pod *core.Pod, source *corev1.EmptyDirVolumeSource, allocatable corev1.ResourceList) int64 {
	limit := allocatable.Memory().Value()
	least := func(v int64) {
		if v > 0 && (limit == 0 || v < limit) {
			limit = v
		}
	}
	least(containersLimit(pod))
	if source.SizeLimit != nil {
		least(source.SizeLimit.Value())
	}
	return limit
}

// containersLimit is the sum of the memory limits of the pod's containers;
// zero if one has none.
func containersLimit(pod *core.Pod) int64 {
	if pod.Spec.Resources != nil {
		if limit := pod.Spec.Resources.Limits.Memory().Value(); limit > 0 {
			return limit
		}
	}
	var sum int64
	for i := range pod.Spec.Containers {
		limit := pod.Spec.Containers[i].Resources.Limits.Memory().Value()
		if limit == 0 {
			return 0
		}
		sum += limit
	}
	return sum
}
