package leader

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// NewIdentity returns an identity that no other process has; host, usually the
// host's name, tells people where it runs. On Linux the identity also says
// which process it is of: a holder that died without releasing its lease need
// not be waited for by a successor on the same machine (see ended).
func NewIdentity(host string) string {
	const tail = 8
	unique := rand.Text()[:tail]
	place, err := pidNamespaceOf("self")
	if err != nil {
		return host + "_" + unique
	}
	start, _, err := startTimeOf("self")
	if err != nil {
		return host + "_" + unique
	}
	return fmt.Sprintf("%s_%s.%d.%d.%s", host, place, os.Getpid(), start, unique)
}

// pidNamespaceOf identifies the PID namespace that a process runs in and the boot of
// the machine: together with these, a PID and a start time identify one process
// for ever.
func pidNamespaceOf(process string) (string, error) {
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

// startTimeOf is when process was started, in the kernel's ticks; exited says that
// only its exit status is left.
func startTimeOf(process string) (ticks uint64, exited bool, err error) {
	stat, err := os.ReadFile(filepath.Join("/proc", process, "stat"))
	if err != nil {
		return 0, false, err
	}
	// The command's name is in parentheses and may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third of proc(5) on
	const state, start = 0, 19
	if len(fields) <= start {
		return 0, false, fmt.Errorf("/proc/%s/stat has %d fields after the name", process, len(fields))
	}
	ticks, err = strconv.ParseUint(fields[start], 10, 64)
	return ticks, fields[state] == "Z" || fields[state] == "X", err
}

// hasEnded reports whether the holder's process has certainly ended: it ran where
// we run, and its PID is free or belongs to a later process.
func hasEnded(holder, ours string) bool {
	place, pid, start, ok := parseIdentity(holder)
	if !ok {
		return false
	}
	if ourPlace, _, _, ok := parseIdentity(ours); !ok || ourPlace != place {
		return false
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	// A /proc that hides other users' processes says nothing about them.
	now, exited, err := startTimeOf(strconv.Itoa(pid))
	return err == nil && (exited || now != start)
}

// parseIdentity takes an identity of NewIdentity apart; place has the host in it.
func parseIdentity(identity string) (place string, pid int, start uint64, ok bool) {
	host := strings.LastIndexByte(identity, '_')
	parts := strings.Split(identity[host+1:], ".")
	if host < 0 || len(parts) != 5 {
		return "", 0, 0, false
	}
	pid, pidErr := strconv.Atoi(parts[2])
	start, startErr := strconv.ParseUint(parts[3], 10, 64)
	return identity[:host] + "_" + parts[0] + "." + parts[1], pid, start, pidErr == nil && startErr == nil && pid > 0
}
