package upgrade

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// checkInterval is a variable for tests, which have no patience.
var checkInterval = Patience

// watchPeer calls gone once the other side of a connection has been away for Patience, until done is
// closed. Reading would notice that too, but nothing is read while earlier data waits to be written:
// if a client is killed while a container does not read its input, nobody would notice.
func watchPeer(c net.Conn, done <-chan struct{}, gone func()) {
	raw := rawOf(c)
	if raw == nil {
		return // it is no socket
	}
	go func() {
		ticker := time.NewTicker(checkInterval)
		defer ticker.Stop()
		for away := false; ; {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			before := away
			if away = peerHasLeft(raw); before && away {
				gone()
				return
			}
		}
	}()
}

func rawOf(c net.Conn) syscall.RawConn {
	for {
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = inner.NetConn()
	}
	if socket, ok := c.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// PeerHasLeft reports whether the other side of a connection will send no more, or the connection is
// broken or closed. It reads nothing: that there is something left to read does not hide it.
func PeerHasLeft(c net.Conn) bool {
	raw := rawOf(c)
	return raw != nil && peerHasLeft(raw)
}

// peerHasLeft reports whether the other side will send no more, or the
// connection is broken or closed.
func peerHasLeft(raw syscall.RawConn) (left bool) {
	err := raw.Control(func(fd uintptr) {
		one := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(one, 0)
		left = err == nil && n > 0
	})
	return left || err != nil
}
