package node

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Only what a process has opened itself may change between two counts of this one, so that the
// other tests of the package must not run meanwhile.
func TestOpenFiles(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	processes := []int{os.Getpid(), ended.Process.Pid}
	filesBefore, socketsBefore, _ := OpenFiles(processes)
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	files, sockets, told := OpenFiles(processes)
	if files < filesBefore+2 || sockets != socketsBefore+1 || !told {
		t.Errorf("%d files and %d sockets, then %d and %d (%v)", filesBefore, socketsBefore, files, sockets, told)
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	if limit, known := OpenFilesLimit(os.Getpid()); limit != int64(own.Cur) || !known {
		t.Errorf("limit %d (%v), want %d", limit, known, own.Cur)
	}
	if limit, known := OpenFilesLimit(ended.Process.Pid); known {
		t.Errorf("limit %d of a process that has ended", limit)
	}
}

// Without CAP_SYS_PTRACE, the sockets of others' processes are not known, and not none.
func TestSocketsThatMayNotBeSeen(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped: needs root, to start a process of another user")
	}
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its capabilities with it
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		if err := unix.Capget(&header, &caps[0]); err != nil {
			t.Error(err)
		}
		caps[0].Effective &^= 1 << unix.CAP_SYS_PTRACE
		if err := unix.Capset(&header, &caps[0]); err != nil {
			t.Error(err)
		}
		if files, sockets, told := OpenFiles([]int{other.Process.Pid}); files == 0 || told {
			t.Errorf("%d files, %d sockets (%v)", files, sockets, told)
		}
	}()
	<-done
}
