package leader

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// NewIdentity returns an identity that no other process has; host, by habit the
// host's name, tells people where it runs. On Linux the identity also says
// which process it is of: a holder that died without releasing its lease need
// not be waited for by a successor on the same machine (see ended).
func NewIdentity(host string) string {
	const tail = 8
	unique := rand.Text()[:tail]
	place, err := placeOf("self")
	if err != nil {
		return host + "_" + unique
	}
	start, alive := startOf("self")
	if !alive {
		return host + "_" + unique
	}
	return fmt.Sprintf("%s_%s.%d.%d.%s", host, place, os.Getpid(), start, unique)
}

// placeOf names the PID namespace that process runs in, in this boot of this
// machine: within it, a PID and a start time are one process for ever.
func placeOf(process string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	namespace, err := os.Readlink(filepath.Join("/proc", process, "ns/pid")) // pid:[4026531836]
	if err != nil {
		return "", err
	}
	id := strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
	return strings.ReplaceAll(strings.TrimSpace(string(boot)), "-", "") + "." + id, nil
}

// startOf is when process was started, in the kernel's ticks; alive is false if
// there is no such process, or only its exit status is left.
func startOf(process string) (ticks uint64, alive bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", process, "stat"))
	if err != nil {
		return 0, false
	}
	// The command's name is in parentheses and may hold anything.
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	fields := strings.Fields(string(rest)) // from the third of proc(5) on
	const state, start = 0, 19
	if len(fields) <= start || fields[state] == "Z" || fields[state] == "X" {
		return 0, false
	}
	ticks, err = strconv.ParseUint(fields[start], 10, 64)
	return ticks, err == nil
}

// ended reports whether it is certain that the holder's process is no more:
// it ran where we run, and its PID is free or taken by a later process.
func ended(holder, ours string) bool {
	place, process, start, ok := parse(holder)
	if !ok {
		return false
	}
	if ourPlace, _, _, ok := parse(ours); !ok || ourPlace != place {
		return false
	}
	now, alive := startOf(process)
	return !alive || now != start
}

// parse takes an identity of NewIdentity apart; place has the host in it.
func parse(identity string) (place, process string, start uint64, ok bool) {
	host := strings.LastIndexByte(identity, '_')
	parts := strings.Split(identity[host+1:], ".")
	if host < 0 || len(parts) != 5 {
		return "", "", 0, false
	}
	if _, err := strconv.Atoi(parts[2]); err != nil {
		return "", "", 0, false
	}
	start, err := strconv.ParseUint(parts[3], 10, 64)
	return identity[:host] + "_" + parts[0] + "." + parts[1], parts[2], start, err == nil
}
