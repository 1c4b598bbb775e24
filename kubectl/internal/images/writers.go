package images

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownersWrite lets root, and the user who runs this process, change what next keeps, and
// others only read it. What is pulled from here runs as root: whoever may push decides what
// that is, and on a machine of several users each of them reaches loopback.
func ownersWrite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := checkWriter(r); err != nil {
				deny(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// deny answers as registries do (OCI Distribution Specification, "Error Codes").
func deny(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	body := map[string]any{"errors": []map[string]string{{"code": "DENIED", "message": err.Error()}}}
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// checkWriter returns an error unless the client is a process of a user who may push.
func checkWriter(r *http.Request) error {
	connection, ok := r.Context().Value(connectionKey{}).(*net.TCPConn)
	if !ok {
		return errors.New("can't identify the pushing user: not a TCP connection")
	}
	client, server := connection.RemoteAddr().(*net.TCPAddr), connection.LocalAddr().(*net.TCPAddr)
	user, err := userOf(client.AddrPort(), server.AddrPort())
	if err == nil {
		err = checkOpen(connection)
	}
	if err != nil {
		return fmt.Errorf("can't identify the pushing user: %w", err)
	}
	if user != 0 && user != os.Geteuid() {
		return fmt.Errorf("user %d may not push: only root and the user who runs this registry may", user)
	}
	return nil
}

type connectionKey struct{}

// withConnection has ownersWrite know a request's connection (http.Server's ConnContext).
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// checkOpen returns an error unless the client's end is open. As long as it is, nobody else has
// its port. A client that sent a request and reset the connection could have root's next one,
// from the same port, taken for its own.
func checkOpen(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var info *unix.TCPInfo
	var asked error
	if err := raw.Control(func(fd uintptr) { info, asked = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil {
		return err
	}
	if asked != nil {
		return asked
	}
	const established = 1 // the kernel's TCP_ESTABLISHED
	if info.State != established {
		return fmt.Errorf("%s has hung up", c.RemoteAddr())
	}
	return nil
}

// userOf is the user whose socket on this machine is the client's end of a connection.
func userOf(client, server netip.AddrPort) (int, error) {
	for _, table := range []struct {
		path  string
		bytes func(netip.Addr) []byte
	}{{"/proc/self/net/tcp", plain}, {"/proc/self/net/tcp6", mapped}} {
		user, found, err := userIn(table.path, inTable(client, table.bytes), inTable(server, table.bytes))
		if err != nil || found {
			return user, err
		}
	}
	return 0, fmt.Errorf("no process owns the connection from %s any more", client)
}

// userIn looks for the client's end of a connection in a table of the kernel's (proc(5)).
func userIn(table, client, server string) (user int, found bool, err error) {
	f, err := os.Open(table)
	if errors.Is(err, fs.ErrNotExist) { // the machine has no IPv6
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		const local, remote, state, uid, inode = 1, 2, 3, 7, 9
		fields := strings.Fields(lines.Text())
		if len(fields) <= inode || fields[local] != client || fields[remote] != server {
			continue
		}
		// The kernel says that a socket is root's once its process has closed it.
		const established = "01"
		if fields[state] != established || fields[inode] == "0" {
			return 0, false, nil
		}
		user, err := strconv.Atoi(fields[uid])
		return user, err == nil, err
	}
	return 0, false, lines.Err()
}

// plain and mapped are the bytes of an address in the table of its family, and of an IPv4
// address in that of IPv6.
func plain(a netip.Addr) []byte { return a.Unmap().AsSlice() }

func mapped(a netip.Addr) []byte {
	b := a.As16()
	return b[:]
}

// inTable writes an address as the kernel does: words of 32 bits, as this machine reads them.
func inTable(a netip.AddrPort, bytes func(netip.Addr) []byte) string {
	var text strings.Builder
	for word := bytes(a.Addr()); len(word) > 0; word = word[4:] {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(word))
	}
	return fmt.Sprintf("%s:%04X", text.String(), a.Port())
}
