package install_test

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kctl/proto/pki"
	"kctl/test/harness"
)

// TestClockADayBehind starts an API server with a certificate that is valid
// from tomorrow, as on a machine whose clock is a day behind. The server says
// so, and so does kctl.
func TestClockADayBehind(t *testing.T) {
	c := newControlPlane(t)
	c.startEtcd(t)
	ca, err := pki.Load(c.pki("ca.crt"), c.pki("ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	tomorrow := time.Now().AddDate(0, 0, 1)
	early, err := ca.Issue(pki.Subject{CommonName: "kube-apiserver", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, tomorrow, time.Hour)
	if err == nil {
		err = early.Save(c.pki("apiserver.crt"), c.pki("apiserver.key"))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, "apiserver", c.apiserver())
	s.hears("READY=1")
	harness.Eventually(t, patience, func() error { // it arrives through a pipe
		if log := s.stderr.String(); !strings.Contains(log, c.pki("apiserver.crt")+" is not valid before ") || !strings.Contains(log, "set this machine's clock") {
			return fmt.Errorf("the server does not say what is wrong:\n%s", log)
		}
		return nil
	})
	kctl := exec.Command(filepath.Join(harness.Bin(t), "kctl"), "--kubeconfig", filepath.Join(c.dir, "admin.kubeconfig"), "get", "namespaces")
	if out, err := kctl.CombinedOutput(); err == nil || !strings.Contains(string(out), "not yet valid") || !strings.Contains(string(out), "clock") {
		t.Errorf("kctl: %v\n%s", err, out)
	}
}

// TestSchedulersPortIsTaken starts a scheduler on a port where somebody else
// listens.
func TestSchedulersPortIsTaken(t *testing.T) {
	c := newControlPlane(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := start(t, "scheduler", []string{"--kubeconfig=" + filepath.Join(c.dir, "scheduler.kubeconfig"), "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", taken.Addr().(*net.TCPAddr).Port)})
	code, last := s.ends()
	for _, want := range []string{"scheduler: ", "address already in use", "ss -ltnp"} {
		if code == 0 || !strings.Contains(last, want) {
			t.Errorf("exit code %d, and it does not say %q:\n%s", code, want, last)
		}
	}
}
