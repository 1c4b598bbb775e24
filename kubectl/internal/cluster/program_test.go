package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kctl/proto/eventually"
)

func TestPIDOfAnotherProcessIsNotOurs(t *testing.T) {
	l := layout(t)
	if err := os.MkdirAll(l.path("run"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(l.PIDFile("kubelet"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strconv.Itoa(os.Getpid()))
	if pid := l.pid("kubelet"); pid != 0 {
		t.Errorf("this test's process %d passes for a kubelet", pid)
	}
	write("rubbish")
	if pid := l.pid("kubelet"); pid != 0 {
		t.Errorf("rubbish is process %d", pid)
	}
	// A process that names the directory on its command line and does not end by
	// itself.
	cmd := exec.Command("tail", "-f", "/dev/null", l.PIDFile("kubelet"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { _ = cmd.Wait(); close(reaped) }() // as init would
	defer func() { _ = cmd.Process.Kill(); <-reaped }()
	write(strconv.Itoa(cmd.Process.Pid))
	if pid := l.pid("kubelet"); pid != cmd.Process.Pid {
		t.Fatalf("our process is %d, want %d", pid, cmd.Process.Pid)
	}
	if err := l.stop(t.Context(), "kubelet", 5*time.Second); err != nil || l.ownsProcess(cmd.Process.Pid) {
		t.Errorf("after the stop it runs: %t, %v", l.ownsProcess(cmd.Process.Pid), err)
	}
	if _, err := os.Stat(l.PIDFile("kubelet")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestAwaitSaysWhyAProgramEnded(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	p := program{
		name:  "kubelet",
		path:  "/bin/sh",
		args:  []string{"-c", "echo no such device; exit 3", l.path("x") + "/"},
		ready: func(context.Context) error { return errors.New("not yet") },
	}
	if _, err := l.start(t.Context(), p); err == nil || !strings.Contains(err.Error(), "no such device") || strings.Contains(err.Error(), "kept") {
		t.Errorf("got %v", err)
	}
	p.flags = "--nosuch" // perhaps of an earlier time
	if _, err := l.start(t.Context(), p); err == nil || !strings.Contains(err.Error(), `"--nosuch" are kept for the next time; --kubelet-flags gives it others`) {
		t.Errorf("got %v", err)
	}
}

// A node is Ready for a while after its kubelet has ended: a kubelet that ends at its
// start is not taken for ready on the word of the one before.
func TestAKubeletIsReadyByItsOwnWord(t *testing.T) {
	l := layout(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	}))
	defer api.Close()
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + api.URL +
		"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
	if err := os.WriteFile(l.Kubeconfig("admin"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	health := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, port, err := net.SplitHostPort(health.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &settings{NodeName: "n"}
	if s.HealthzPort, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	all, err := programs(l, s, UpOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := all[Kubelet].ready(t.Context()); err != nil {
		t.Errorf("it is well: %v", err)
	}
	health.Close()
	if err := all[Kubelet].ready(t.Context()); err == nil {
		t.Error("a kubelet that does not run is ready")
	}
	if all, err = programs(l, s, UpOptions{Flags: map[string]string{Kubelet: "--healthz-port=0"}}); err != nil {
		t.Fatal(err)
	}
	if err := all[Kubelet].ready(t.Context()); err != nil {
		t.Errorf("a kubelet that was told not to answer: %v", err)
	}
}

// A program that ran before and never answers is named with what ends it. Time is the
// bubble's; the process is outside.
func TestAProgramThatHangs(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	hung := exec.Command("tail", "-f", "/dev/null", l.path("x")+"/")
	if err := hung.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hung.Process.Kill(); _ = hung.Wait() }()
	pid := strconv.Itoa(hung.Process.Pid)
	if err := os.WriteFile(l.PIDFile("kubelet"), []byte(pid), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := program{name: "kubelet", ready: func(context.Context) error { return errors.New("no answer") }}
		if started, err := l.start(t.Context(), p); started || err == nil || !strings.Contains(err.Error(), "kubelet is not ready: no answer") ||
			!strings.HasSuffix(err.Error(), "`kill -9 "+pid+"` and run this again") {
			t.Errorf("started: %v, got %v", started, err)
		}
	})
}

// Just after its start, a program's command line may be empty.
func TestAwaitBelievesInAProgramWithoutCommandLine(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	looked := 0
	p := program{name: "kubelet", path: "/bin/sh", args: []string{"-c", "exec sleep 2"}, ready: func(context.Context) error {
		if looked++; looked < 3 {
			return errors.New("not yet")
		}
		return nil
	}}
	ended, err := l.spawn(p)
	if err == nil {
		err = l.waitReady(t.Context(), p, ended)
	}
	if err != nil {
		t.Error(err)
	}
}

// A process is written down before it becomes the program, so that whoever kills kctl leaves
// no program behind that the next up and down do not know.
func TestNoProgramRunsUnknown(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(l.PIDFile("kubelet"), 0o700); err != nil { // where a file should be
		t.Fatal(err)
	}
	p := program{
		name:  "kubelet",
		path:  "/bin/sh",
		args:  []string{"-c", `echo "it is $$ and known as $(cat "$0")"`, l.PIDFile("kubelet")},
		ready: func(context.Context) error { return errors.New("not yet") },
	}
	if _, err := l.start(t.Context(), p); err == nil || !strings.Contains(err.Error(), "kubelet ended:") || strings.Contains(err.Error(), "it is") {
		t.Errorf("where its process can't be written down: %v", err)
	}
	if err := os.Remove(l.PIDFile("kubelet")); err != nil {
		t.Fatal(err)
	}
	_, err := l.start(t.Context(), p)
	var is, known int
	if err != nil {
		_, said, _ := strings.Cut(err.Error(), "it is ")
		_, _ = fmt.Sscanf(said, "%d and known as %d", &is, &known)
	}
	if is == 0 || is != known {
		t.Errorf("got %v", err)
	}
}

// Programs are recognised by every way in which their command lines name the directory.
func TestCommandLinesThatNameADirectory(t *testing.T) {
	for arguments, want := range map[string]bool{
		"containerd --config /a/b/containerd.toml":                        true,
		"kubelet --root-dir=/a/b/kubelet":                                 true,
		"kubelet --container-runtime-endpoint=unix:///a/b/run/socket":     true,
		"containerd-shim -address /a/b/run/socket":                        true,
		"/a/b/bin/program":                                                true,
		"containerd --config /srv/a/b/containerd.toml":                    false,
		"kubelet --root-dir=/srv/a/b/kubelet":                             false,
		"kubelet --container-runtime-endpoint=unix:///srv/a/b/run/socket": false,
		"kubelet --root-dir=/a/bc/kubelet":                                false,
		"":                                                                false,
	} {
		if got := namesBelow([]byte(strings.ReplaceAll(arguments, " ", "\x00")+"\x00"), "/a/b"); got != want {
			t.Errorf("%q names a path below /a/b: %t, want %t", arguments, got, want)
		}
	}
}

// Ctrl-C is not an error of the program that is awaited.
func TestAwaitInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := program{name: "slow", ready: func(context.Context) error { return errors.New("not yet") }}
	if err := layout(t).waitReady(ctx, p, func() bool { return false }); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "not ready") {
		t.Errorf("got %v", err)
	}
}

// If a program does not answer, the error names it and shows its log: of a
// plain *url.Error kctl would say only that the server can't be reached.
func TestAwaitSaysWhatItWaitedFor(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	p := program{name: "slow", ready: func(context.Context) error {
		return fmt.Errorf("node: %w", &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: errors.New("refused")})
	}}
	err := layout(t).waitReady(ctx, p, func() bool { return false })
	if failed := (*url.Error)(nil); err == nil || errors.As(err, &failed) || !strings.HasPrefix(err.Error(), "slow is not ready: refused; the end of ") {
		t.Errorf("got %v", err)
	}
}

// Where programs serve is what their command lines say: the user's flags win, and those
// with which a program runs over those for its next start.
func TestWhereProgramsServe(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	s := &settings{NodeName: "n", KubeletPort: 1, SchedulerPort: 2}
	addresses := func(scheduler, kubelet string) [2]string {
		t.Helper()
		all, err := programs(l, s, UpOptions{Flags: map[string]string{Scheduler: scheduler, Kubelet: kubelet}})
		if err != nil {
			t.Fatal(err)
		}
		return [2]string{all[Scheduler].address, all[Kubelet].address}
	}
	for _, test := range []struct {
		scheduler, kubelet string
		want               [2]string
	}{
		{"", "", [2]string{"127.0.0.1:2", "127.0.0.1:1"}},
		{"--secure-port=3 --v=4", "--port 4", [2]string{"127.0.0.1:3", "127.0.0.1:4"}},
		{"--bind-address=0.0.0.0", "--address=192.0.2.1 --port=5 --port=6", [2]string{"127.0.0.1:2", "192.0.2.1:6"}},
		{"--secure-port=0", "--port=", [2]string{"", "127.0.0.1:"}},
	} {
		if got := addresses(test.scheduler, test.kubelet); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
	running := exec.Command("sh", "-c", "read line", "x", l.path("x")+"/", "--bind-address=127.0.0.1", "--secure-port=7")
	input, err := running.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close(); _ = running.Wait() }()
	if err := os.WriteFile(l.PIDFile(Scheduler), []byte(strconv.Itoa(running.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // what has just been started may have no command line yet
		if l.commandLine(Scheduler) != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := addresses("--secure-port=8", ""); got[0] != "127.0.0.1:7" {
		t.Errorf("of a scheduler that runs: %q", got[0])
	}
}

// An API server whose etcd, of an earlier time, is gone: who runs `kctl up` is told where
// it comes from. What it waited for is what it said last, not that time was up.
func TestAnEtcdThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := program{name: Apiserver, etcd: "http://127.0.0.1:9", ready: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(readyWithin / 3 * 2):
				return errors.New("[-]etcd failed")
			}
		}}
		err := layout(t).waitReady(t.Context(), p, func() bool { return false })
		if err == nil || !strings.Contains(err.Error(), "not ready: [-]etcd failed; ") ||
			!strings.Contains(err.Error(), `its etcd, "http://127.0.0.1:9", is the one of --etcd-servers`) {
			t.Errorf("got %v", err)
		}
	})
}

// What is missing is named in the same order each time.
func TestMissingTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	const want = "missing on this machine: containerd, containerd-shim-runc-v2, ip, iptables, runc"
	if _, err := checkTools(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s…", err, want)
	}
}

// A log that is long enough is kept beside a new one when its program starts; one that is not
// goes on.
func TestLogsDoNotGrowForEver(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	say := func(words string) {
		t.Helper()
		p := program{name: "kubelet", path: "/bin/sh", args: []string{"-c", "echo " + words}}
		ended, err := l.spawn(p)
		if err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "it ends", ended)
	}
	holds := func(path, want string) {
		t.Helper()
		if said, err := os.ReadFile(path); err != nil || string(said) != want {
			t.Errorf("%s holds %q (%v), want %q", path, said, err, want)
		}
	}
	say("first")
	say("second")
	holds(l.Log("kubelet"), "first\nsecond\n")
	if err := os.Truncate(l.Log("kubelet"), fullLog+1); err != nil {
		t.Fatal(err)
	}
	say("third")
	holds(l.Log("kubelet"), "third\n")
	if info, err := os.Stat(l.Log("kubelet") + ".1"); err != nil || info.Size() != fullLog+1 {
		t.Errorf("the former log: %v", err)
	}
}
