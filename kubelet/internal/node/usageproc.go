package node

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// valueOf is the number in the line of /proc/stat that begins with name; 0 if
// there is none.
func valueOf(stat []byte, name string) int64 {
	for line := range bytes.Lines(stat) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == name {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return n
		}
	}
	return 0
}

// bootedAt is when the machine was started, as /proc/stat has it; zero if it does not say.
func bootedAt(stat []byte) time.Time {
	if seconds := valueOf(stat, "btime"); seconds > 0 {
		return time.Unix(seconds, 0)
	}
	return time.Time{}
}

// Processes returns how many tasks there are, and how many there may be; 0 for what
// the kernel does not say (proc(5): loadavg).
func Processes() (now, most uint64) {
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		if fields := strings.Fields(string(data)); len(fields) > 3 {
			_, all, _ := strings.Cut(fields[3], "/")
			now, _ = strconv.ParseUint(all, 10, 64)
		}
	}
	return now, MaxProcesses()
}

// MaxProcesses is how many tasks the machine may have, threads included: the smaller of the
// kernel's two limits (proc(5): kernel/pid_max, kernel/threads-max). 0 means unknown.
func MaxProcesses() (most uint64) {
	for _, file := range []string{"pid_max", "threads-max"} {
		data, err := os.ReadFile("/proc/sys/kernel/" + file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64); err == nil && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

// notTheMachines are the prefixes of interfaces that lead to pods, or nowhere.
var notTheMachines = []string{"lo", "veth", "docker", "nerdctl"}

// interfaces reads the kernel's table /proc/net/dev: for each interface, eight
// columns about what was received, and eight about what was sent. The interface
// of the default route, by the table in /proc/net/route, comes first.
func interfaces(devices, routes string) []Interface {
	data, err := os.ReadFile(devices)
	if err != nil {
		return nil
	}
	var all []Interface
	for line := range strings.Lines(string(data)) {
		name, figures, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(figures)
		if !ok || len(fields) < 16 || slices.ContainsFunc(notTheMachines, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		column := func(i int) uint64 { n, _ := strconv.ParseUint(fields[i], 10, 64); return n }
		all = append(all, Interface{
			Name: name, RxBytes: column(0), RxPackets: column(1), RxErrors: column(2), RxDropped: column(3),
			TxBytes: column(8), TxPackets: column(9), TxErrors: column(10), TxDropped: column(11),
		})
	}
	if at := slices.IndexFunc(all, func(i Interface) bool { return i.Name == outward(routes) }); at > 0 {
		main := all[at]
		all = slices.Insert(slices.Delete(all, at, at+1), 0, main)
	}
	return all
}

// InterfacesOf is the traffic of the interfaces that a process sees; nil if there is no
// such process.
func InterfacesOf(pid int) []Interface {
	return interfaces(fmt.Sprintf("/proc/%d/net/dev", pid), fmt.Sprintf("/proc/%d/net/route", pid))
}

// outward is the interface of the machine's default route; empty where it has none.
func outward(routes string) string {
	data, err := os.ReadFile(routes)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		// Interface, destination, gateway, four counters, mask.
		if f := strings.Fields(line); len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			return f[0]
		}
	}
	return ""
}
