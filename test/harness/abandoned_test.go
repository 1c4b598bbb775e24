package harness

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What a killed test leaves behind is removed: a machine of its own with what
// runs there, control groups with a process, a network namespace, a mount.
func TestTakeAwayAbandoned(t *testing.T) {
	NeedRoot(t)
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	script := `
ip netns add $0
mkdir $1/mounted && mount -t tmpfs tmpfs $1/mounted
for g in /sys/fs/cgroup/pids /sys/fs/cgroup; do [ ! -e $g/cgroup.procs ] || break; done
mkdir -p $g/$0/inner
sh -c 'echo $$ >$0/inner/cgroup.procs; exec sleep 1001' $g/$0 &
unshare --net --mount --propagation private sh -c 'mkdir -p /run/netns; mount -t tmpfs $0 /run/netns; (unshare --mount sh -c "umount /run/netns; echo ready; exec sleep 1002") & exec sleep 1003' $0 &
wait`
	cmd := exec.Command("sh", "-ec", script, name, dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_ = cmd.Process.Kill()
	if err := takeAwayAbandoned("", dir); err != nil {
		t.Error(err)
	}
	// A surviving process would hold the pipe open.
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if left := groupsOf(dir); len(left) > 0 || exists("/run/netns/"+name) || len(mountsBelow(dir)) > 0 || exists(dir) {
		t.Errorf("left: control groups %v, mounts %v, or the network namespace or directory", left, mountsBelow(dir))
	}
}
