package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
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

// Somebody who may not use the files of a cluster is told what would help.
func TestFilesOfAnotherUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "roots")
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{filepath.Join(dir, "pki"), dir} {
		if err := os.Chmod(mode, 0o100); err != nil { // for tests that are not root's
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.Chmod(filepath.Join(dir, "pki"), 0o700) })
	for _, line := range []string{"init --advertise-address 192.0.2.1", "renew all", "check", "kubeconfig --user me"} {
		var out bytes.Buffer
		cmd := newPKI(frame.New(frame.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, clock.RealClock{}))
		cmd.SetArgs(append(strings.Fields(line), "--dir", dir))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		withoutRights(t, func() {
			err := cmd.Execute()
			if err == nil || !strings.Contains(err.Error(), "permission denied (run it as root, or name a directory of your own by --dir)") || out.String() != "" {
				t.Errorf("pki %s: %v, printed %s", line, err, out.String())
			}
		})
	}
	withoutRights(t, func() {
		checks := fileChecks(dir, time.Now(), time.Hour)
		if len(checks) != 1 || checks[0].Advice != "run it as root (sudo)" {
			t.Errorf("doctor: %+v", checks)
		}
	})
}
