package node

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/filesystem"
)

// Machine is what does not change while the kubelet runs.
type Machine struct {
	CPUs             int64
	Memory           int64 // bytes
	EphemeralStorage int64 // bytes of the file system of the kubelet's root; 0 is not told
	HugePages        map[corev1.ResourceName]int64
	MachineID        string
	SystemUUID       string
	BootID           string
	Kernel           string
	OSImage          string
	Swap             int64
	Booted           time.Time // zero if the kernel does not say
}

// ReadMachine looks at the machine that we run on.
func ReadMachine(rootDir string) (Machine, error) {
	m := Machine{CPUs: int64(onlineCPUs(cpuDir)), HugePages: hugePages()}
	memory, err := Memory()
	if err != nil {
		return m, err
	}
	m.Memory, m.Swap = memory["MemTotal"], memory["SwapTotal"]
	disk, err := filesystem.Of(rootDir)
	if err != nil {
		return m, fmt.Errorf("size of the file system of %s: %w", rootDir, err)
	}
	m.EphemeralStorage = int64(disk.Capacity)
	m.MachineID = firstLine("/etc/machine-id", "/var/lib/dbus/machine-id")
	m.SystemUUID = firstLine("/sys/class/dmi/id/product_uuid", "/sys/class/dmi/id/product_serial")
	if m.SystemUUID == "" {
		m.SystemUUID = m.MachineID
	}
	m.BootID = firstLine("/proc/sys/kernel/random/boot_id")
	m.Kernel = firstLine("/proc/sys/kernel/osrelease")
	m.OSImage = osImage()
	if stat, err := os.ReadFile("/proc/stat"); err == nil {
		m.Booted = bootedAt(stat)
	}
	return m, nil
}

func firstLine(paths ...string) string {
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil {
			line, _, _ := strings.Cut(string(data), "\n")
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Memory gives the values of /proc/meminfo in bytes.
func Memory() (map[string]int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, fmt.Errorf("memory of the machine: %w", err)
	}
	values := map[string]int64{}
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			values[strings.TrimSuffix(fields[0], ":")] = n * 1024
		}
	}
	return values, nil
}

// inUse is how much of the machine's memory is used, and how much of that is not
// just inactive files, in bytes, as the root control group of either version counts
// it, like upstream's kubelet. The kernel's own memory is not included.
func inUse(memory map[string]int64) (used, workingSet int64) {
	used = memory["AnonPages"] + memory["Cached"] + memory["Buffers"] + memory["SwapCached"]
	return used, max(0, used-memory["Inactive(file)"])
}

// MemoryLeft is how much of the machine's memory its working set leaves, and how much
// there is for all but huge pages, in bytes.
func MemoryLeft() (available, capacity int64, err error) {
	memory, err := Memory()
	if err != nil {
		return 0, 0, err
	}
	available, capacity = memoryLeft(memory, hugePages())
	return available, capacity, nil
}

// memoryLeft takes off the huge pages, which are kept for those who ask for them and are in nobody's working
// set: with half of the memory in them, the machine would seem to have plenty when it has none.
func memoryLeft(memory map[string]int64, pages map[corev1.ResourceName]int64) (available, capacity int64) {
	_, workingSet := inUse(memory)
	capacity = memory["MemTotal"]
	for _, size := range pages {
		capacity -= size
	}
	return max(0, capacity-workingSet), capacity
}

func hugePages() map[corev1.ResourceName]int64 {
	pages := map[corev1.ResourceName]int64{}
	dirs, _ := filepath.Glob("/sys/kernel/mm/hugepages/hugepages-*kB")
	for _, dir := range dirs {
		size, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), "hugepages-"), "kB"), 10, 64)
		if err != nil {
			continue
		}
		count, err := strconv.ParseInt(firstLine(filepath.Join(dir, "nr_hugepages")), 10, 64)
		if err != nil {
			continue
		}
		quantity := resource.NewQuantity(size*1024, resource.BinarySI)
		pages[corev1.ResourceName(corev1.ResourceHugePagesPrefix+quantity.String())] = count * size * 1024
	}
	return pages
}

func osImage() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return runtime.GOOS
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return runtime.GOOS
}
