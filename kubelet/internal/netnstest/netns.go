// Package netnstest gives tests a network of their own: what they change there is never the machine's.
package netnstest

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Inside runs f in a new network namespace, whose only link is a loopback that is down. The namespace
// disappears with its thread: f must do its work itself, or in processes that it starts.
func Inside(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to make a network namespace")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}
