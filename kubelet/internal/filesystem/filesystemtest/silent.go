// Package filesystemtest gives tests a file system that never answers, like one whose
// server has gone.
package filesystemtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// MountSilent mounts a file system at dir until the test ends, or until end is called. Who
// asks it for anything waits until then, with no way to give up.
func MountSilent(t testing.TB, dir string) (end func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to mount a file system")
	}
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("skipped: the kernel has no FUSE: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())
	if err := unix.Mount("silent", dir, "fuse", 0, options); err != nil {
		_ = server.Close() // the test fails for another reason
		t.Fatalf("mounting a file system without a server: %v", err)
	}
	end = sync.OnceFunc(func() {
		// All who wait get an error once nobody can answer.
		if err := errors.Join(unix.Unmount(dir, unix.MNT_DETACH), server.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}
