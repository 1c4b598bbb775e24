package node

import (
	"net"
	"os"
	"os/exec"
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
	filesBefore, socketsBefore := OpenFiles(processes)
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
	files, sockets := OpenFiles(processes)
	if files < filesBefore+2 || sockets != socketsBefore+1 {
		t.Errorf("%d files and %d sockets, then %d and %d", filesBefore, socketsBefore, files, sockets)
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
