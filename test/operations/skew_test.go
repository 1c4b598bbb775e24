package operations_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kctl/test/harness"
)

// before is the version from which the test upgrades: the last release, or,
// until there is one, a commit that people have run.
const before = "91e8649016ef6a1b2b4024519547da13c8dce266"

// TestSkew upgrades a cluster one program at a time, and goes back the same
// way. At each step, programs of both versions work together, kctl of both
// versions is run, and the pod that was there keeps running.
func TestSkew(t *testing.T) {
	harness.NeedLong(t, "it builds the programs of an older state of the source")
	old, now := oldPrograms(t), harness.Bin(t)
	c := harness.Start(t, harness.Options{Without: []string{"apiserver", "scheduler", "kubelet"}})
	s := &skewed{t: t, c: c, old: old, now: now}
	for _, program := range []string{"apiserver", "scheduler", "kubelet"} {
		s.start(program, old)
	}
	c.Create(harness.Pod("stays", harness.Demo))
	c.AwaitRunning("stays")
	was := s.container()

	steps := []struct {
		program, bin, name string
	}{
		{"apiserver", now, "the API server is new"},
		{"scheduler", now, "the scheduler, too"},
		{"kubelet", now, "all are new"},
		{"apiserver", old, "the API server is old, all else is new"},
		{"scheduler", old, "only the kubelet is new"},
		{"kubelet", old, "all are old again"},
	}
	for i, step := range steps {
		ok := t.Run(step.name, func(t *testing.T) {
			s := &skewed{t: t, c: c.In(t), old: old, now: now}
			s.c.Signal(step.program, syscall.SIGTERM)
			s.start(step.program, step.bin)
			s.c.Kctl("wait", "node/"+s.c.Node, "--for=condition=Ready", "--timeout=120s")
			for _, kctl := range []string{old, now} {
				s.works(filepath.Join(kctl, "kctl"), fmt.Sprintf("step-%d", i))
			}
			if is := s.container(); is != was {
				t.Errorf("the pod's container was %s and is %s", was, is)
			}
		})
		if !ok {
			return
		}
	}
}

// skewed is a cluster whose programs are of two versions.
type skewed struct {
	t        *testing.T
	c        *harness.Cluster
	old, now string // folders of the programs
}

// start starts a program of one version, with the flags that the old version's
// kctl gives: an upgrade keeps settings as they are.
func (s *skewed) start(program, bin string) {
	others := map[string]string{"apiserver": "scheduler,kubelet", "scheduler": "apiserver,kubelet", "kubelet": "apiserver,scheduler"}
	args := []string{"up", "--dir", s.c.Dir, "--port", strconv.Itoa(s.c.Port), "--node-name", s.c.Node, "--bin-dir", bin, "--without",
		others[program] + ",registry,containerd"}
	s.must(filepath.Join(s.old, "kctl"), args...)
	if runs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.c.PID(program))); err != nil || runs != filepath.Join(bin, program) {
		s.t.Fatalf("%s is %s: %v", program, runs, err)
	}
}

func (s *skewed) must(name string, args ...string) string {
	s.t.Helper()
	r := s.c.Run("", name, args...)
	if r.Code != 0 {
		s.t.Fatalf("%s %s: exit code %d\n%s%s", name, strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// container is the container of the pod that stays.
func (s *skewed) container() string {
	s.t.Helper()
	return s.c.Kctl("get", "pod", "stays", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
}

// works runs a pod with a kctl, and tries everything that goes through several
// programs.
func (s *skewed) works(kctl, name string) {
	s.must(kctl, "run", name, "--image="+harness.Demo)
	s.must(kctl, "wait", "pod/"+name, "--for=condition=Ready", "--timeout=90s")
	s.must(kctl, "logs", name)
	if out := s.must(kctl, "exec", name, "--", "/demo", "echo", "through"); out != "through\n" {
		s.t.Errorf("exec by %s says %q", kctl, out)
	}
	s.must(kctl, "get", "pods", "-o", "wide")
	s.must(kctl, "describe", "pod", name)
	s.must(kctl, "trace", "pod/"+name)
	s.must(kctl, "delete", "pod", name, "--timeout=90s")
}

// oldPrograms builds the old version's programs unless they are built already,
// and returns their folder.
func oldPrograms(t *testing.T) string {
	t.Helper()
	out := filepath.Join(harness.Root(), "build", "tools", "kctl-"+before[:12])
	if _, err := os.Stat(out); err == nil {
		return out
	}
	source := out + ".source"
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", harness.Root()}, args...)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v (a clone with its history is needed)\n%s", strings.Join(args, " "), err, text)
		}
	}
	git("worktree", "add", "--detach", source, before)
	t.Cleanup(func() { git("worktree", "remove", "--force", source) })
	build := exec.CommandContext(t.Context(), "make", "-C", source, "build")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the older programs: %v\n%s", err, text)
	}
	if err := os.Rename(filepath.Join(source, "bin"), out); err != nil {
		t.Fatal(err)
	}
	return out
}
