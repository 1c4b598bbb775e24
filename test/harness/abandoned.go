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

// Dir makes a directory for what a test starts itself, and takes it away with the
// test. What names the directory goes also if the test is killed: processes that
// have it on their command line, or in whose mount namespace something is mounted
// from its base name, with all that they started; the control groups, and the
// network namespace of its base name, and the processes in them; what is mounted
// below it.
func Dir(t testing.TB) string {
	t.Helper()
	dir, release := holdDir(t, Bin(t))
	t.Cleanup(func() {
		if mounts := mountsBelow(dir); len(mounts) > 0 {
			t.Errorf("left behind: mounts %v", mounts) // nothing is removed that lies behind them
		} else if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's directory: %v", err)
		}
		release()
	})
	return dir
}

// holdDir makes a directory for a cluster or a server, and first takes away what
// tests left behind that were killed, by ^C or a time limit: clusters go on then.
// It is not t.TempDir, whose paths are too long for sockets, and whose removal
// must not come before the mounts below it are gone.
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

// takeAwayAbandoned has kctl take a cluster down that nobody holds any more, and
// ends what else runs in the directory.
func takeAwayAbandoned(bin, dir string) error {
	// What runs in a mount namespace of its own is out of kctl's reach.
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

// endAbandoned kills what has to do with the directory, and takes the control
// groups away.
func endAbandoned(dir string) error {
	patience := time.After(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond) // the kernel tells of ends nobody but parents
	defer tick.Stop()
	for {
		// Children are found before their parents are gone.
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

// familiesOf are these processes and all that come from them.
func familiesOf(pids []int, named map[int]string) []int {
	for pid := range named {
		pids = append(pids, pid)
	}
	children := map[int][]int{}
	for pid, stat := range procFiles("stat") {
		// pid (comm) state ppid: what is in the brackets may be anything.
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

// procFiles is a file of all processes that can be read and say something.
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

// groupsOf are the control groups that bear the directory's base name or the name
// that kctl derives from it, and those in them, the innermost first.
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
			if _, err := fmt.Sscan(line, &pid); err == nil && pid > 1 { // 0 is one of another PID namespace
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
