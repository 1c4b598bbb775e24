package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// withoutRights calls do on a thread that may not use root's files, and ends with it.
func withoutRights(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Setfsuid(65534); err != nil && os.Geteuid() == 0 {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}

// Somebody who may not use the files of a cluster is told once what would help: of those of
// `kctl up`, whose folder is closed, and of those of `kctl pki init`, whose keys are.
func TestFilesOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // or all in it is closed
		t.Fatal(err)
	}
	closed, open := filepath.Join(dir, "closed"), filepath.Join(dir, "open")
	pki := func(line, dir string) (said string, err error) {
		var out bytes.Buffer
		cmd := newPKI(frame.New(frame.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, clock.RealClock{}))
		cmd.SetArgs(append(strings.Fields(line), "--dir", dir))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err = cmd.Execute()
		return out.String(), err
	}
	for _, dir := range []string{closed, open} {
		if _, err := pki("init --advertise-address 192.0.2.1", dir); err != nil {
			t.Fatal(err)
		}
	}
	var shut []string
	for _, pattern := range []string{"open/*.kubeconfig", "open/pki/*.key", "open/pki/*/*.key", "closed/pki", "closed"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || found == nil {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		shut = append(shut, found...)
	}
	for _, path := range shut {
		if err := os.Chmod(path, 0); err != nil { // for tests that are not root's
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, path := range slices.Backward(shut) {
			_ = os.Chmod(path, 0o700)
		}
	})
	withoutRights(t, func() {
		for _, dir := range []string{closed, open} {
			for _, line := range []string{"init --advertise-address 192.0.2.1", "renew all", "check", "kubeconfig --user me"} {
				out, err := pki(line, dir)
				if err == nil || !strings.Contains(err.Error(), "permission denied (run it as root, or choose a directory of your own with --dir)") ||
					strings.Count(err.Error(), "denied") > 1 || out != "" {
					t.Errorf("pki %s: %v, printed %s", line, err, out)
				}
			}
			checks := fileChecks(dir, time.Now(), time.Hour)
			if len(checks) != 1 || checks[0].Advice != "run it as root (sudo)" {
				t.Errorf("doctor: %+v", checks)
			}
		}
	})
}
