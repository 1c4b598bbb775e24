package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kctl/kubectl/internal/bootstrap"
)

// The runtime of kctl up is no service of the machine: advice names what ends and
// starts it, for a shell.
func TestAdviceAboutTheRuntimeOfKctlUp(t *testing.T) {
	n := bootstrap.Node{Dir: filepath.Join(t.TempDir(), "my cluster")}
	if machine := nodeMachine(n); machine != nil {
		t.Fatalf("a directory that is not there is a node: %+v", machine)
	}
	if err := os.Mkdir(n.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(n.Dir, "cluster.json"), n.Kubeconfig()} {
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	machine := nodeMachine(n)
	if machine == nil {
		t.Fatal("the node was not seen")
	}
	if machine.Port != 0 {
		t.Error("a kubelet is missed that was never started: kctl up --without=kubelet")
	}
	if machine.Install != "" {
		t.Errorf("kctl up has a runtime of its own; advice %q", machine.Install)
	}
	for _, advice := range []string{machine.Start, machine.Restart} {
		if !strings.Contains(advice, "`kctl up --dir '"+n.Dir+"'`") || strings.Contains(advice, "systemctl") {
			t.Errorf("advice %q", advice)
		}
	}
}

// A kubelet that kctl up has started, and that has a log, is missed on its port.
func TestTheKubeletOfKctlUp(t *testing.T) {
	n := bootstrap.Node{Dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(n.Dir, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.Dir, "log", "kubelet.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.Kubeconfig(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]int{
		`{"kubeletPort": 26103}`: 26103,
		`{"kubeletPort": 26103, "flags": {"kubelet": "--v=2 --port=26104"}}`: 26104,
		`{"kubeletPort": 26103, "flags": {"kubelet": "--port 26105"}}`:       26105,
	} {
		if err := os.WriteFile(filepath.Join(n.Dir, "cluster.json"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		if machine := nodeMachine(n); machine == nil || machine.Port != want || !machine.Kubelet {
			t.Errorf("%s: %+v, want port %d", settings, machine, want)
		}
	}
}

// Only root may read what kctl up chose. Anybody sees that the node is kctl up's, and is
// told of its runtime and its logs, not of systemd's services.
func TestAKctlUpWhoseSettingsCannotBeRead(t *testing.T) {
	n := bootstrap.Node{Dir: t.TempDir(), Runtime: "unix:///other.sock", RootDir: "/other"}
	for path, content := range map[string]string{filepath.Join(n.Dir, "cluster.json"): "{", n.Kubeconfig(): ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	machine := nodeMachine(n)
	if machine == nil || !strings.Contains(machine.Start, "kctl up --dir "+n.Dir) || strings.Contains(machine.KubeletHint, "systemctl") || machine.Port != 0 {
		t.Errorf("%+v", machine)
	}
}

func TestAdviceQuotesTheDirectoryOfCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my cluster")
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pki", "ca.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, check := range fileChecks(dir, time.Now(), time.Hour) {
		if check.Advice != "" && !strings.Contains(check.Advice, "--dir '"+dir+"'") {
			t.Errorf("%+v", check)
		}
	}
}
