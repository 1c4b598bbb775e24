package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestMain also plays the process on which settings are tried.
func TestMain(m *testing.M) {
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

func TestAProcessRunsAsItIsTold(t *testing.T) {
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
	for _, s := range []Settings{{OOMScore: -1001}, {OOMScore: 1001}, {OpenFiles: -1}} {
		if s.Validate() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}
