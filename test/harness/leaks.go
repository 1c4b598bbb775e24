package harness

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// machine is what a cluster could leave behind on a machine outside of its
// directory, by kind.
type machine map[string]map[string]bool

// baseline is what was there before the first of the clusters that are up now.
var (
	baselineMu sync.Mutex
	baseline   machine
	up         int
)

// watchForLeaks takes the baseline with the first cluster. The function it
// returns is called when the cluster is down; with the last one it fails the
// test for everything that is there and was not before.
func watchForLeaks(t testing.TB, dir string) func() {
	t.Helper()
	baselineMu.Lock()
	defer baselineMu.Unlock()
	if up++; up == 1 {
		baseline = look(t)
	}
	return func() {
		baselineMu.Lock()
		defer baselineMu.Unlock()
		checkDirectory(t, dir)
		if up--; up > 0 {
			return // what is there may be another cluster's
		}
		for kind, names := range look(t) {
			for name := range names {
				if !baseline[kind][name] {
					t.Errorf("left behind: %s %s", kind, name)
				}
			}
		}
	}
}

// look lists only what bears a name that a cluster of ours gives: other
// programs of the machine come and go as they like.
func look(t testing.TB) machine {
	t.Helper()
	m := machine{"network namespace": {}, "link": {}, "cgroup": {}, "iptables rule": {}}
	for _, pattern := range []string{"/run/netns/cni-*"} {
		found, _ := filepath.Glob(pattern)
		for _, name := range found {
			m["network namespace"][name] = true
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Name, "kctl") || strings.HasPrefix(l.Name, "veth") {
			m["link"][l.Name] = true
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/kctl-????????", "/sys/fs/cgroup/*/kctl-????????", "/sys/fs/cgroup/*/k8s.io", "/sys/fs/cgroup/*/kubepods*"} {
		groups, _ := filepath.Glob(pattern)
		for _, g := range groups {
			m["cgroup"][g] = true
		}
	}
	out, _ := exec.Command("iptables-save").Output()
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(line, `name: \"kctl-`) || strings.Contains(line, "CNI-HOSTPORT") {
			m["iptables rule"][line] = true
		}
	}
	return m
}

// checkDirectory fails the test for every process and mount that has to do
// with dir, and for dir itself.
func checkDirectory(t testing.TB, dir string) {
	t.Helper()
	for _, p := range processesOf(dir) {
		t.Errorf("left behind: process %s", p)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		if strings.Contains(line, dir+"/") {
			t.Errorf("left behind: mount %s", line)
		}
	}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
}

// processesOf are the live processes with dir on their command line, but for
// this one and its parents' shells.
func processesOf(dir string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !bytes.Contains(cmdline, []byte(dir+"/")) || e.Name() == fmt.Sprint(os.Getpid()) {
			continue
		}
		out = append(out, e.Name()+": "+string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
	}
	return out
}
