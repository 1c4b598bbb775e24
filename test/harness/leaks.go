package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// machine is what clusters may leave behind on a machine outside their
// directories, by kind.
type machine map[string]map[string]bool

// baseline is what was there before the first of the clusters that are up now.
var (
	baselineMu sync.Mutex
	baseline   machine
	up         int
	ids        []string // of all clusters since the baseline
)

// WatchForLeaks takes the baseline with the first cluster. Call the function
// that it returns when the cluster is down; with the last cluster, it fails the
// test for everything that is there now and was not before.
func WatchForLeaks(t testing.TB, dir string) func() {
	t.Helper()
	baselineMu.Lock()
	defer baselineMu.Unlock()
	if up++; up == 1 {
		baseline = look(t)
		ids = nil
	}
	ids = append(ids, id(dir))
	return func() {
		baselineMu.Lock()
		defer baselineMu.Unlock()
		checkDirectory(t, dir)
		if up--; up > 0 {
			return // what is there may belong to another cluster
		}
		shared := othersContainers()
		if shared {
			t.Log("another container runtime is at work on this machine: links, namespaces and control groups that bear no name of ours can't be " +
				"told from its own, and are not looked at")
		}
		for kind, names := range look(t) {
			for name := range names {
				if leftBehind(name, ids, shared || baseline[kind][name]) {
					t.Errorf("left behind: %s %s", kind, name)
				}
			}
		}
	}
}

// named is in what bears a cluster's id.
var named = regexp.MustCompile(`kctl-?[0-9a-f]{8}`)

// leftBehind says that the clusters with these ids left a thing. What was there before them, or may be
// another runtime's, is theirs only if it bears their name; what bears another's is never: tests of two
// packages run side by side, and a cluster's links and control groups go after its runtime has ended.
func leftBehind(name string, ids []string, others bool) bool {
	if named.MatchString(name) {
		return slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(name, id) })
	}
	return !others
}

// id is in the names of everything that kctl makes outside the directory.
func id(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:4])
}

// CgroupRoot is the control group for the pods of a cluster, as kctl names it.
func CgroupRoot(dir string) string { return "/kctl-" + id(dir) }

// look lists only things with names such as our clusters give: other programs
// of the machine come and go as they like.
func look(t testing.TB) machine {
	t.Helper()
	m := machine{"network namespace": {}, "link": {}, "cgroup": {}, "iptables rule": {}}
	namespaces, _ := filepath.Glob("/run/netns/cni-*")
	for _, name := range namespaces {
		m["network namespace"][name] = true
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
	for _, pattern := range []string{"/sys/fs/cgroup/kctl-????????", "/sys/fs/cgroup/*/kctl-????????", "/sys/fs/cgroup/*/k8s.io",
		"/sys/fs/cgroup/*/kubepods*"} {
		groups, _ := filepath.Glob(pattern)
		for _, g := range groups {
			m["cgroup"][g] = true
		}
	}
	out, _ := exec.Command("iptables-save").Output()
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(line, `name: \"kctl-`) || strings.Contains(line, "--comment kctl-") || strings.Contains(line, "CNI-HOSTPORT") {
			m["iptables rule"][line] = true
		}
	}
	return m
}

// othersContainers says whether a container runtime runs on the machine. It is
// asked when no cluster of ours is up, so it is somebody else's.
func othersContainers() bool {
	commands, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range commands {
		comm, _ := os.ReadFile(file)
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if strings.HasPrefix(string(comm), "containerd") && len(cmdline) > 0 { // zombies have no command line
			return true
		}
	}
	return false
}

// checkDirectory fails the test for every process and mount that belongs to
// dir, and for dir itself.
func checkDirectory(t testing.TB, dir string) {
	t.Helper()
	for pid, line := range processesOf(dir) {
		t.Errorf("left behind: process %d: %s", pid, line)
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

// processesOf are the live processes with dir on their command line, by pid,
// without this one.
func processesOf(dir string) map[int]string {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	found := map[int]string{}
	for _, file := range lines {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		line, err := os.ReadFile(file)
		if err == nil && pid != os.Getpid() && bytes.Contains(line, []byte(dir+"/")) {
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
	return found
}
