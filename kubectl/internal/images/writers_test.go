package images

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Every user of a machine reaches its loopback, and what the registry has runs as root.
func TestOnlyItsOwnersPush(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to be other users")
	}
	pushed := 0
	server := serve(ownersWrite(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			pushed++
		}
	})))
	defer server.Close()
	address := server.Listener.Addr().(*net.TCPAddr).AddrPort()
	for _, c := range []struct {
		name, method string
		user         int
		mapped       bool
		want         int
	}{
		{"root", http.MethodPut, 0, false, http.StatusOK},
		{"root by IPv6's socket", http.MethodPut, 0, true, http.StatusOK},
		{"somebody who reads", http.MethodGet, 65534, false, http.StatusOK},
		{"somebody who looks", http.MethodHead, 65534, false, http.StatusOK},
		{"somebody", http.MethodPut, 65534, false, http.StatusForbidden},
		{"somebody by IPv6's socket", http.MethodPost, 65534, true, http.StatusForbidden},
		{"somebody who deletes", http.MethodDelete, 65534, false, http.StatusForbidden},
		{"somebody with a method of their own", "PUSH", 65534, false, http.StatusForbidden},
	} {
		pushed = 0
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
			return dialAs(c.user, address, c.mapped)
		}}}
		request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+"/v2/demo/manifests/latest", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		response.Body.Close()
		if response.StatusCode != c.want || pushed > 0 && c.user != 0 {
			t.Errorf("%s: %s, %d pushed; want %d", c.name, response.Status, pushed, c.want)
		}
	}
}

func serve(handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnContext = withConnection
	server.Start()
	return server
}

// Whoever pushes and resets the connection is not taken for who connects from the same port
// afterwards.
func TestAPortsNextUserDidNotPush(t *testing.T) {
	arrived, goOn, status := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	owners := ownersWrite(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	server := serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-goOn
		answer := httptest.NewRecorder()
		owners.ServeHTTP(answer, r)
		status <- answer.Code
	}))
	defer server.Close()
	first, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write([]byte("PUT /v2/demo/manifests/latest HTTP/1.1\r\nHost: registry\r\nContent-Length: 0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-arrived
	if err := errors.Join(first.(*net.TCPConn).SetLinger(0), first.Close()); err != nil { // a reset
		t.Fatal(err)
	}
	next, err := (&net.Dialer{LocalAddr: first.LocalAddr()}).Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	close(goOn)
	if got := <-status; got != http.StatusForbidden {
		t.Errorf("the push was answered with %d", got)
	}
}

// The kernel counts a socket whose process has closed it as root's.
func TestWhoHasHungUpIsNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	from, to := client.LocalAddr().(*net.TCPAddr).AddrPort(), client.RemoteAddr().(*net.TCPAddr).AddrPort()
	if user, err := userOf(from, to); err != nil || user != os.Geteuid() {
		t.Errorf("this test is user %d, %v; want %d", user, err, os.Geteuid())
	}
	client.Close()
	if user, err := userOf(from, to); err == nil {
		t.Errorf("a closed socket is user %d's", user)
	}
}

// dialAs connects by a socket of a user's, of IPv4 or of IPv6 with an address that stands
// for one of IPv4.
func dialAs(user int, to netip.AddrPort, mapped bool) (net.Conn, error) {
	runtime.LockOSThread() // whose user for files, which sockets are, is changed
	defer runtime.UnlockOSThread()
	before, err := unix.SetfsuidRetUid(user)
	if err != nil {
		return nil, err
	}
	family, address := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if mapped {
		family, address = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if _, back := unix.SetfsuidRetUid(before); back != nil || err != nil {
		return nil, errors.Join(err, back)
	}
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close() // FileConn has its own
	if err := unix.Connect(fd, address); err != nil {
		return nil, err
	}
	return net.FileConn(file)
}
