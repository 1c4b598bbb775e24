package node

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// DiskIO is what a block device has done since the machine started.
type DiskIO struct {
	Reads, ReadsMerged, SectorsRead      uint64
	Writes, WritesMerged, SectorsWritten uint64
	ReadTime, WriteTime                  uint64 // nanoseconds that all requests took together
	InProgress                           uint64 // requests
	Busy, WeightedBusy                   uint64 // nanoseconds with any request, and that times their number
}

// diskIO reads a device's line of the kernel's table (/proc/diskstats; Kernel docs, "I/O statistics
// fields"); nil where it has none, as for what is no block device.
func diskIO(table, device string) *DiskIO {
	name, isDevice := strings.CutPrefix(device, "/dev/")
	text, err := os.ReadFile(table)
	if !isDevice || err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // major and minor number, name, figures
		if len(fields) < 14 || fields[2] != name {
			continue
		}
		of := func(i int) uint64 { n, _ := strconv.ParseUint(fields[i], 10, 64); return n }
		spent := func(i int) uint64 { return of(i) * uint64(time.Millisecond) }
		return &DiskIO{
			Reads: of(3), ReadsMerged: of(4), SectorsRead: of(5), ReadTime: spent(6),
			Writes: of(7), WritesMerged: of(8), SectorsWritten: of(9), WriteTime: spent(10),
			InProgress: of(11), Busy: spent(12), WeightedBusy: spent(13),
		}
	}
	return nil
}
