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
	"testing"
)

// machine is what a cluster could leave behind on a machine.
type machine struct {
	namespaces, links, cgroups, rules map[string]bool
}

func snapshot(t testing.TB) machine {
	t.Helper()
	m := machine{namespaces: map[string]bool{}, links: map[string]bool{}, cgroups: map[string]bool{}, rules: map[string]bool{}}
	for _, dir := range []string{"/run/netns", "/var/run/netns"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			m.namespaces[e.Name()] = true
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		m.links[l.Name] = true
	}
	for _, pattern := range []string{"/sys/fs/cgroup/kctl*", "/sys/fs/cgroup/*/kctl*", "/sys/fs/cgroup/*/k8s.io", "/sys/fs/cgroup/*/kubepods*"} {
		groups, _ := filepath.Glob(pattern)
		for _, g := range groups {
			m.cgroups[g] = true
		}
	}
	out, _ := exec.Command("iptables-save").Output()
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(line, "CNI-") {
			m.rules[line] = true
		}
	}
	return m
}

// check fails the test for everything that is there now and was not before,
// and for every process and mount that has to do with dir.
func (before machine) check(t testing.TB, dir string) {
	t.Helper()
	after := snapshot(t)
	for what, sets := range map[string][2]map[string]bool{
		"network namespace": {before.namespaces, after.namespaces},
		"link":              {before.links, after.links},
		"cgroup":            {before.cgroups, after.cgroups},
		"iptables rule":     {before.rules, after.rules},
	} {
		for name := range sets[1] {
			if !sets[0][name] {
				t.Errorf("left behind: %s %s", what, name)
			}
		}
	}
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
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
			t.Logf("left behind: %s", path)
			return nil
		})
		t.Errorf("left behind: %s", dir)
	}
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
