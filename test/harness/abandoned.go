package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kctl/proto/leftover"
)

const prefix = "kctl-"

// Dir makes a directory for what a test starts itself, and removes it when the
// test ends. If the test is killed, the next test also removes everything that
// is named after the directory: processes with it on their command line,
// processes in whose mount namespace something is mounted from its base name,
// their descendants, control groups and the network namespace of its base name
// with the processes in them, and mounts below it.
func Dir(t testing.TB) string {
	t.Helper()
	dir, release := holdDir(t, Bin(t))
	t.Cleanup(func() {
		if mounts := mountsBelow(dir); len(mounts) > 0 {
			t.Errorf("left behind: mounts %v", mounts) // RemoveAll would empty what is mounted there
		} else if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's directory: %v", err)
		}
		release()
	})
	return dir
}

// holdDir makes a directory for a cluster or a server. First it removes what
// killed tests (by ^C or a time limit) left behind, such as clusters that still
// run. It is not t.TempDir: those paths are too long for sockets, and they are
// removed before the mounts below them are gone.
func holdDir(t testing.TB, bin string) (dir string, release func()) {
	t.Helper()
	err := leftover.Sweep(os.TempDir(), prefix, func(dir string) error { return takeAwayAbandoned(bin, dir) })
	if err != nil {
		t.Log(err) // the next test tries again
	}
	if dir, release, err = leftover.Hold(os.TempDir(), prefix); err != nil {
		t.Fatal(err)
	}
	return dir, release
}

// takeAwayAbandoned takes down a cluster that no test holds any more, by kctl,
// and ends what else runs in the directory.
func takeAwayAbandoned(bin, dir string) error {
	// kctl does not reach what runs in another mount namespace.
	_, err := os.Stat(filepath.Join(dir, "cluster.json"))
	if !errors.Is(err, fs.ErrNotExist) && len(insideOf(dir)) == 0 {
		if out, err := exec.Command(filepath.Join(bin, "kctl"), "down", "--dir", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("kctl down: %w: %s", err, out)
		}
	}
	if err := endAbandoned(dir); err != nil {
		return err
	}
	if name := filepath.Base(dir); exists("/run/netns/" + name) {
		if out, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
			return fmt.Errorf("ip netns del: %w: %s", err, out)
		}
	}
	for _, mount := range mountsBelow(dir) {
		_ = unix.Unmount(mount, unix.MNT_DETACH)
	}
	if left := mountsBelow(dir); len(left) > 0 {
		return fmt.Errorf("still mounted: %v", left)
	}
	return os.RemoveAll(dir)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// endAbandoned kills the processes that belong to the directory, and removes
// its control groups.
func endAbandoned(dir string) error {
	patience := time.After(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond) // only a parent is told of a process's end
	defer tick.Stop()
	for {
		// Children are looked up before their parents are gone.
		pids := familiesOf(append(membersOf(groupsOf(dir)), insideOf(dir)...), processesOf(dir))
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(pids) == 0 && removeGroups(groupsOf(dir)) {
			return nil
		}
		select {
		case <-patience:
			return fmt.Errorf("processes or control groups can't be ended: %v, %v", pids, groupsOf(dir))
		case <-tick.C:
		}
	}
}

// insideOf are the processes in whose mount namespace something is mounted from
// the directory's base name.
func insideOf(dir string) (pids []int) {
	for pid, mounts := range procFiles("mountinfo") {
		if strings.Contains(mounts, " - tmpfs "+filepath.Base(dir)+" ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// familiesOf are these processes and all their descendants.
func familiesOf(pids []int, named map[int]string) []int {
	for pid := range named {
		pids = append(pids, pid)
	}
	children := map[int][]int{}
	for pid, stat := range procFiles("stat") {
		// The line is "pid (comm) state ppid …", and comm may contain anything.
		fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && fields[0] != "Z" && pid != os.Getpid() {
			var parent int
			_, _ = fmt.Sscan(fields[1], &parent)
			children[parent] = append(children[parent], pid)
		}
	}
	found := map[int]bool{}
	var all []int
	for len(pids) > 0 {
		pid := pids[0]
		if pids = pids[1:]; !found[pid] && pid != os.Getpid() {
			found[pid] = true
			all, pids = append(all, pid), append(pids, children[pid]...)
		}
	}
	return all
}

// procFiles is a file of every process, by pid, where it can be read and is not
// empty.
func procFiles(name string) map[int]string {
	files, _ := filepath.Glob("/proc/[0-9]*/" + name)
	texts := map[int]string{}
	for _, file := range files {
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err != nil {
			continue
		}
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			texts[pid] = string(text)
		}
	}
	return texts
}

// groupsOf are the control groups with the directory's base name or the name
// that kctl derives from it, and those below them, the innermost first.
func groupsOf(dir string) (groups []string) {
	for _, root := range []string{"/" + filepath.Base(dir), CgroupRoot(dir)} {
		tops, _ := filepath.Glob("/sys/fs/cgroup/*" + root)
		for _, top := range append(tops, "/sys/fs/cgroup"+root) {
			_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append([]string{path}, groups...)
				}
				return nil
			})
		}
	}
	return groups
}

func membersOf(groups []string) (pids []int) {
	for _, group := range groups {
		text, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		for line := range strings.FieldsSeq(string(text)) {
			var pid int
			if _, err := fmt.Sscan(line, &pid); err == nil && pid > 1 { // 0 is a process of another PID namespace
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func removeGroups(groups []string) bool {
	for _, group := range groups {
		if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// mountsBelow are the mounts below the directory, the latest first.
func mountsBelow(dir string) (mounts []string) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			mounts = append([]string{fields[4]}, mounts...)
		}
	}
	return mounts
}
