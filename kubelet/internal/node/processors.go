package node

import (
	"path/filepath"
	"runtime"
	"sync"

	"k8s.io/utils/cpuset"
)

const cpuDir = "/sys/devices/system/cpu"

// onlineCPUs counts the logical processors of the machine. Those that this process may run on can be
// fewer: a kubelet that its unit pins to reserved ones still offers all to pods.
func onlineCPUs(dir string) int {
	if cpus, err := cpuset.Parse(firstLine(filepath.Join(dir, "online"))); err == nil && cpus.Size() > 0 {
		return cpus.Size()
	}
	return runtime.NumCPU()
}

// Processors counts the machine's cores and the sockets that they are in; 0 for what the kernel does
// not say, as on some virtual machines. It reads them once: there are two files of each processor.
var Processors = sync.OnceValues(func() (cores, sockets int) { return processorsIn(cpuDir) })

func processorsIn(dir string) (cores, sockets int) {
	type core struct{ socket, id string }
	allCores, allSockets := map[core]bool{}, map[string]bool{}
	logical, _ := filepath.Glob(filepath.Join(dir, "cpu[0-9]*", "topology")) // the pattern is a good one
	for _, one := range logical {
		is := core{firstLine(filepath.Join(one, "physical_package_id")), firstLine(filepath.Join(one, "core_id"))}
		if is.socket != "" && is.id != "" {
			allCores[is], allSockets[is.socket] = true, true
		}
	}
	return len(allCores), len(allSockets)
}
