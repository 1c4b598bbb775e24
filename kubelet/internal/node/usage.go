package node

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/filesystem"
)

// Usage is the total usage of the machine.
type Usage struct {
	At         time.Time
	CPU        uint64 // nanoseconds of all cores since the machine started
	Memory     uint64 // bytes
	WorkingSet uint64 // bytes of it that the kernel can't simply drop
	Available  uint64 // bytes
	RSS        uint64 // bytes of processes that belong to no file
	// PageFaults are those since the machine started.
	PageFaults, MajorPageFaults uint64
	// Disk is the file system of the kubelet's root directory: its device
	// (/dev/sda1, or what else is mounted), its size and how full it is.
	Disk                        string
	DiskCapacity, DiskAvailable uint64 // bytes
	DiskUsed                    uint64 // what is neither available nor kept for root
	Inodes, InodesFree          uint64
	DiskIO                      *DiskIO // nil for what is no block device
	Swap, SwapFree              uint64  // bytes
	Processes, MaxProcesses     uint64  // the kernel's tasks, threads included
	Booted                      time.Time
	Pressure                    cgroup.Pressure
	Interfaces                  []Interface // the host's own; the one with the default route first
}

// Interface is what a network interface of the machine has carried.
type Interface struct {
	Name                                    string
	RxBytes, RxPackets, RxErrors, RxDropped uint64
	TxBytes, TxPackets, TxErrors, TxDropped uint64
}

// ticks is how many ticks per second the kernel counts (USER_HZ).
const ticks = 100

// busyFields are those of the first line of /proc/stat that count work: user,
// nice, system, then after idle and iowait irq, softirq and steal (proc(5)).
var busyFields = []int{1, 2, 3, 6, 7, 8}

// ReadUsage looks at the machine that we run on.
func ReadUsage(rootDir string, now time.Time) (Usage, error) {
	u := Usage{At: now}
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, fmt.Errorf("processors of the machine: %w", err)
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	fields := bytes.Fields(line)
	for _, i := range busyFields {
		if i >= len(fields) {
			return u, fmt.Errorf("processors of the machine: /proc/stat says %q", line)
		}
		n, err := strconv.ParseUint(string(fields[i]), 10, 64)
		if err != nil {
			return u, fmt.Errorf("processors of the machine: %w", err)
		}
		u.CPU += n * uint64(time.Second/ticks)
	}
	memory, err := Memory()
	if err != nil {
		return u, err
	}
	used, workingSet := inUse(memory)
	u.Memory, u.WorkingSet, u.RSS = uint64(used), uint64(workingSet), uint64(memory["AnonPages"])
	available, _ := memoryLeft(memory, hugePages())
	u.Available = uint64(available)
	if faults, err := os.ReadFile("/proc/vmstat"); err == nil {
		u.PageFaults, u.MajorPageFaults = uint64(max(0, valueOf(faults, "pgfault"))), uint64(max(0, valueOf(faults, "pgmajfault")))
	}
	u.Swap, u.SwapFree = uint64(memory["SwapTotal"]), uint64(memory["SwapFree"])
	u.Booted = bootedAt(data)
	u.Processes, u.MaxProcesses = Processes()
	if u.Pressure, err = cgroup.MachinePressure(); err != nil {
		return u, err
	}
	u.Interfaces = interfaces("/proc/net/dev", "/proc/net/route")
	disk, err := filesystem.Of(rootDir)
	if err != nil {
		return u, fmt.Errorf("file system of %s: %w", rootDir, err)
	}
	u.Disk = filesystem.Device(rootDir)
	u.DiskIO = diskIO("/proc/diskstats", u.Disk)
	u.DiskCapacity, u.DiskUsed, u.DiskAvailable, u.Inodes, u.InodesFree = disk.Capacity, disk.Used, disk.Available, disk.Inodes,
		disk.InodesFree
	return u, nil
}
