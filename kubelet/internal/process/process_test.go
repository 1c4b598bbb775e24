package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestMain also plays the process on which settings are tried.
func TestMain(m *testing.M) {
	if group := os.Getenv("KCTL_SYSTEM_GROUP"); group != "" {
		os.Exit(gather(group))
	}
	group := os.Getenv("KCTL_PROCESS_GROUP")
	if group == "" {
		os.Exit(m.Run())
	}
	for range 2 { // the second time it exists already
		if err := (Settings{OOMScore: 900, OpenFiles: 512, Group: group}).Apply(zap.NewNop()); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	for _, file := range []string{"oom_score_adj", "limits", "cgroup"} {
		data, _ := os.ReadFile("/proc/self/" + file)
		fmt.Printf("%s", data)
	}
}

// gather is the first process of a machine with one more, both in the root group, on
// which a kubelet with a group for the system is started. It prints the groups of both.
func gather(group string) int {
	for _, root := range []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/systemd/cgroup.procs"} {
		if err := os.WriteFile(root, []byte("0"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Println(err)
			return 1
		}
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait() // it was killed
	}()
	if err := (Settings{SystemGroup: group}).Apply(zap.NewNop()); err != nil {
		fmt.Println(err)
		return 1
	}
	for _, pid := range []int{os.Getpid(), other.Process.Pid} {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		fmt.Printf("%d:\n%s", pid, data)
	}
	return 0
}

func TestTheSystemsProcessesAreGathered(t *testing.T) {
	group := groupOfTest(t)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", os.Args[0])
	cmd.Env = append(os.Environ(), "KCTL_SYSTEM_GROUP="+group)
	out, err := cmd.CombinedOutput()
	first, other, both := strings.Cut(strings.TrimPrefix(string(out), "1:\n"), ":\n")
	if err != nil || !both || strings.Contains(first, group) || !strings.Contains(other, ":"+group+"\n") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// groupOfTest is the name of a group that is removed after the test.
func groupOfTest(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups are root's")
	}
	group := fmt.Sprintf("/kctl-process-%d", os.Getpid())
	t.Cleanup(func() {
		for _, above := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			out, _ := exec.Command("sh", "-c", "rmdir "+above+group+" 2>&1").CombinedOutput()
			if text := string(out); strings.Contains(text, "busy") {
				t.Error(text)
			}
		}
	})
	return group
}

func TestAProcessRunsAsItIsTold(t *testing.T) {
	group := groupOfTest(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "KCTL_PROCESS_GROUP="+group)
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.HasPrefix(text, "900\n") || !strings.Contains(text, ":"+group+"\n") {
		t.Fatalf("%v:\n%s", err, text)
	}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "Max open files") && (fields[3] != "512" || fields[4] != "512") {
			t.Error(line)
		}
	}
}

func TestWhatCantBe(t *testing.T) {
	for _, s := range []Settings{{OOMScore: -1001}, {OOMScore: 1001}, {OpenFiles: -1}, {SystemGroup: "/"}} {
		if s.Validate() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}
