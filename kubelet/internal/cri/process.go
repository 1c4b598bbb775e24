package cri

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// RuntimeProcess is the process id of the runtime at a unix socket, according to the
// kernel.
func RuntimeProcess(endpoint string) (pid int, err error) {
	socket, err := socketPath(endpoint)
	if err != nil {
		return 0, err
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return 0, fmt.Errorf("find the container runtime's process: %w", err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("find the container runtime's process: %w", err)
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, fmt.Errorf("find the container runtime's process: %w", err)
	}
	if failed != nil {
		return 0, fmt.Errorf("find the container runtime's process: %w", failed)
	}
	if peer.Pid == 0 {
		return 0, fmt.Errorf("the process of the container runtime at %s is not visible from here", endpoint)
	}
	return int(peer.Pid), nil
}
