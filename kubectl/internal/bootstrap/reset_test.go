package bootstrap

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestResetKeepsWhatIsNoKubelets(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Reset(t.Context(), Node{Dir: dir, RootDir: dir}); err == nil || !strings.Contains(err.Error(), "check --root-dir") {
		t.Errorf("got %v", err)
	}
}

// Of the directories that a join made nothing is left, unless somebody else has files there.
func TestResetRemovesTheDirectories(t *testing.T) {
	if os.Geteuid() != 0 || Systemd() {
		t.Skip("skipped: needs root, and no systemd, whose unit it would stop")
	}
	for _, other := range []string{"", "pki/mine.crt", "mine.yaml"} {
		dir := filepath.Join(t.TempDir(), "kctl")
		n := Node{Dir: dir, RootDir: filepath.Join(dir, "none")}
		for _, file := range []string{n.caFile(), n.configFile(), filepath.Join(dir, other)} {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if file != dir {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := Reset(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, other)); (err == nil) != (other != "") {
			t.Errorf("beside %q: %v", other, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "pki")); (err == nil) != strings.HasPrefix(other, "pki") {
			t.Errorf("beside %q, pki: %v", other, err)
		}
	}
	// A link is somebody's own, and leads to whatever that keeps there.
	kept, link := t.TempDir(), filepath.Join(t.TempDir(), "kctl")
	if err := os.WriteFile(filepath.Join(kept, "mine.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kept, link); err != nil {
		t.Fatal(err)
	}
	if err := Reset(t.Context(), Node{Dir: link, RootDir: filepath.Join(link, "none")}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
}

// What a kubelet still uses is not removed, however its flag was written. The command that removes it is no kubelet.
func TestResetBesideARunningKubelet(t *testing.T) {
	if os.Geteuid() != 0 || Systemd() {
		t.Skip("skipped: needs root, and no systemd, whose unit it would stop")
	}
	for _, args := range []string{"kubelet --kubeconfig=", "kubelet --kubeconfig ", "kctl reset --kubeconfig="} {
		dir := t.TempDir()
		n := Node{Dir: filepath.Join(dir, "kctl"), RootDir: filepath.Join(dir, "kubelet")}
		// A shell that has the kubelet's arguments, and ends with its input.
		kubelet := exec.Command("sh", append([]string{"-c", "echo; read _"}, strings.Fields(args+n.Kubeconfig())...)...)
		input, errIn := kubelet.StdinPipe()
		output, errOut := kubelet.StdoutPipe()
		if err := errors.Join(errIn, errOut, os.MkdirAll(n.RootDir, 0o700), kubelet.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := output.Read(make([]byte, 1)); err != nil { // it has replaced the test's own command line
			t.Error(err)
		}
		err := Reset(t.Context(), n)
		if refused := err != nil && strings.Contains(err.Error(), "still running"); refused != strings.HasPrefix(args, "kubelet") {
			t.Errorf("%sPATH: %v", args, err)
		}
		if _, gone := os.Stat(n.RootDir); (err == nil) != os.IsNotExist(gone) {
			t.Error(err, gone)
		}
		input.Close()
		_ = kubelet.Wait() // read says that its input has ended
	}
}

// On a machine whose containers are nodes, too, each has a kubelet with the same arguments.
func TestResetBesideANodeInAContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root")
	}
	for _, apart := range []struct {
		by     uintptr
		others bool
	}{{0, false}, {syscall.CLONE_NEWNS, false}, {syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP, true}} {
		n := Node{Dir: t.TempDir()}
		script := "echo; read _"
		if apart.by != 0 {
			script = "mount -t tmpfs none " + n.Dir + "; " + script
		}
		kubelet := exec.Command("sh", "-c", script, "kubelet", "--kubeconfig="+n.Kubeconfig())
		kubelet.SysProcAttr = &syscall.SysProcAttr{Unshareflags: apart.by}
		input, errIn := kubelet.StdinPipe()
		output, errOut := kubelet.StdoutPipe()
		if err := errors.Join(errIn, errOut, kubelet.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := output.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		if pid := n.kubeletProcess(); (pid == "") != apart.others {
			t.Errorf("apart by %x: this node's kubelet is process %q", apart.by, pid)
		}
		input.Close()
		_ = kubelet.Wait() // read says that its input has ended
	}
}

// A kubelet that was not let in has made directories and nothing else: these go, too.
func TestResetOfANodeThatWasNotLetIn(t *testing.T) {
	if os.Geteuid() != 0 || Systemd() {
		t.Skip("skipped: needs root, and no systemd, whose unit it would stop")
	}
	dir := t.TempDir()
	n := Node{Dir: filepath.Join(dir, "kctl"), RootDir: filepath.Join(dir, "kubelet")}
	if err := errors.Join(os.Mkdir(n.Dir, 0o700), os.MkdirAll(filepath.Join(n.RootDir, "pods"), 0o700),
		os.WriteFile(n.bootstrapKubeconfig(), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Reset(t.Context(), n); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A link to the kubelet's directory stays, as one to the configuration does, and of what it
// leads to nothing is left; a second reset has nothing to do.
func TestResetOfADirectoryBehindALink(t *testing.T) {
	if os.Geteuid() != 0 || Systemd() {
		t.Skip("skipped: needs root, and no systemd, whose unit it would stop")
	}
	dir, target := t.TempDir(), t.TempDir()
	n := Node{Dir: filepath.Join(dir, "kctl"), RootDir: filepath.Join(dir, "kubelet")}
	if err := errors.Join(os.Mkdir(filepath.Join(target, "pods"), 0o700), os.Symlink(target, n.RootDir)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Reset(t.Context(), n); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(n.RootDir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// A process that is killed while it writes a file leaves a part of it, with a token or a key.
// The next join removes it, and so does a reset, which keeps what only looks alike.
func TestWhatAKilledJoinLeaves(t *testing.T) {
	if os.Geteuid() != 0 || Systemd() {
		t.Skip("skipped: needs root, and no systemd, whose unit it would stop")
	}
	dir := filepath.Join(t.TempDir(), "kctl")
	o := &Options{Node: Node{Dir: dir, RootDir: filepath.Join(dir, "none"), Runtime: "unix:///x", Port: 10250}, NodeName: "n"}
	parts := []string{filepath.Join(dir, "pki/.ca.crt.123"), filepath.Join(dir, ".bootstrap-kubelet.kubeconfig.3"), filepath.Join(dir, ".kubelet.yaml.4294967295")}
	leave := func() {
		for _, part := range parts {
			if err := errors.Join(os.MkdirAll(filepath.Dir(part), 0o700), os.WriteFile(part, []byte("secret"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, command := range map[string]func() error{
		"join": func() error {
			return o.writeFiles(&Cluster{Server: "https://x:1", CA: []byte("ca")}, NewToken(), false)
		},
		"reset": func() error { return Reset(t.Context(), o.Node) },
	} {
		leave()
		mine := []string{filepath.Join(dir, ".kubelet.yaml.mine"), filepath.Join(dir, ".kubelet.yaml.20261130120000")}
		for _, file := range mine {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := command(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, part := range parts {
			if _, err := os.Stat(part); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after %s: %s: %v", name, part, err)
			}
		}
		for _, file := range mine {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("after %s: %v", name, err)
			}
		}
	}
}

// Joins at the same time, as by two tools that retry, don't take each other's unfinished files away.
func TestJoinsAtOnce(t *testing.T) {
	dir, token := filepath.Join(t.TempDir(), "kctl"), NewToken()
	var joins sync.WaitGroup
	for range 16 {
		o := &Options{Node: Node{Dir: dir, Runtime: "unix:///x", Port: 10250}, NodeName: "n"}
		joins.Go(func() {
			if err := o.writeFiles(&Cluster{Server: "https://x:1", CA: []byte("ca")}, token, false); err != nil {
				t.Error(err)
			}
		})
	}
	joins.Wait()
	for _, file := range []string{"pki/ca.crt", "kubelet.yaml", "bootstrap-kubelet.kubeconfig"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}
