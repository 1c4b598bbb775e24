package install_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kctl/test/harness"
)

// TestCertificatesOnAFullDisk makes a cluster's certificates on a disk without
// room for all of them. Every file that was made is complete, and with more
// room the rest is made.
func TestCertificatesOnAFullDisk(t *testing.T) {
	harness.NeedRoot(t)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=24k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	kctl := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(harness.Bin(t), "kctl"), append(args, "--dir", filepath.Join(disk, "kctl"))...).CombinedOutput()
		return string(out), err
	}
	if out, err := kctl("pki", "init"); err == nil || !strings.Contains(out, "no space left on device") || !strings.Contains(out, "df -h") {
		t.Errorf("on a full disk: %v\n%s", err, out)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=2m"); err != nil {
		t.Fatal(err)
	}
	out, err := kctl("pki", "init")
	if err != nil || !strings.Contains(out, "ca.crt: kept") || !strings.Contains(out, "scheduler.kubeconfig: made") {
		t.Errorf("with room again: %v\n%s", err, out)
	}
	if out, err := kctl("pki", "check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
