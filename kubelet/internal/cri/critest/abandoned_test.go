package critest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/leftover"
)

// TestAbandons is the test that TestAnAbandonedContainerd kills. It has two
// pods; the control group of one is where runtimes put it on their own.
func TestAbandons(t *testing.T) {
	if os.Getenv("CRITEST_ABANDON") == "" {
		t.Skip("skipped: TestAnAbandonedContainerd runs it")
	}
	c := Start(t)
	for i, group := range []string{"", c.CgroupRoot + "/pod"} {
		sandbox := &runtimeapi.PodSandboxConfig{
			Metadata:     &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("pod-", i), Namespace: "default", Uid: fmt.Sprint("uid-", i)},
			LogDirectory: filepath.Join(c.Dir, "logs"),
			Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: group},
		}
		id, err := c.Client().RunPodSandbox(t.Context(), sandbox, "")
		if err != nil {
			t.Fatal(err)
		}
		container, err := c.Client().CreateContainer(t.Context(), id, &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: BusyboxImage},
			Command: []string{"/bin/sh", "-c", "sleep 1000 & sleep 1000"}, LogPath: "c.log",
		}, sandbox)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Client().StartContainer(t.Context(), container); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("abandon", c.Dir)
	select {}
}

// What a killed test leaves behind is removed by the next one, whatever else
// runs on the machine.
func TestAnAbandonedContainerd(t *testing.T) {
	if reason := missing(); reason != "" {
		t.Skipf("no containerd for this test: %s", reason)
	}
	parent, err := os.MkdirTemp("", "ct-") // the paths of t.TempDir are too long
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(parent) // empty by now
	child := exec.Command(os.Args[0], "-test.run", "^TestAbandons$", "-test.v")
	child.Env = append(os.Environ(), "CRITEST_ABANDON=1", "TMPDIR="+parent)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said, dir := make([]byte, 4096), ""
	for text := ""; dir == ""; {
		n, err := out.Read(said)
		if text += string(said[:n]); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if _, after, found := strings.Cut(text, "abandon "); found && strings.Contains(after, "\n") {
			dir, _, _ = strings.Cut(after, "\n")
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	c := newContainerd(dir)
	family := c.family()
	groups := append(c.cgroups(), groupsOf(family)...)
	if len(family) < 8 || len(groups) < 2 || len(c.mounts()) < 6 {
		t.Fatalf("processes %v, control groups %v, mounts %v: less than two pods have", family, groups, c.mounts())
	}
	began := time.Now()
	if err := leftover.Sweep(parent, prefix, takeAwayAbandoned); err != nil {
		t.Error(err)
	}
	t.Logf("taken away within %v", time.Since(began))
	if left := c.family(); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	for _, path := range append(groups, dir, "/sys/class/net/"+c.Bridge) {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	if left := c.mounts(); len(left) != 0 {
		t.Errorf("mounts are left: %v", left)
	}
}

func groupsOf(pids []int) (groups []string) {
	for _, pid := range pids {
		groups = append(groups, containerGroups(pid)...)
	}
	return groups
}
