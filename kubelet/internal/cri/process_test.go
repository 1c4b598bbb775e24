package cri

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	if pid, err := RuntimeProcess(path); err == nil {
		t.Errorf("where nobody listens: %d", pid)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if pid, err := RuntimeProcess("unix://" + path); err != nil || pid != os.Getpid() {
		t.Errorf("%d, %v", pid, err)
	}
}
