package batch

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestZonesWithoutFiles: time zones are known where the machine has no files of them, as in
// the image. It runs itself in a mount namespace of its own, where they are hidden.
func TestZonesWithoutFiles(t *testing.T) {
	const hidden = "KCTL_TEST_WITHOUT_ZONES"
	if os.Getenv(hidden) == "" {
		if os.Geteuid() != 0 {
			t.Skip("skipped: needs root, to hide the machine's files")
		}
		again := exec.Command(os.Args[0], "-test.run=^TestZonesWithoutFiles$")
		again.Env = []string{hidden + "=true"} // without GOROOT, which has them, too
		again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	for _, folder := range []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"} {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, ""); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if errs := validateZone("Europe/Berlin", specPath); len(errs) > 0 {
		t.Error(errs)
	}
}
