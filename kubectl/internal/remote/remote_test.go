package remote

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/runtime"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// breaksOff takes the WebSocket of an exec and closes the connection.
func breaksOff(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(buffered,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+
			"%s\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	_ = buffered.Flush()
	_, _ = bufio.NewReader(conn).ReadByte() // until something of the client comes
}

// A server that goes away in the middle is an error, and nothing else: no lines of the
// library's log appear between the command's output.
func TestALostServerIsOneError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(breaksOff))
	defer server.Close()
	address, err := url.Parse(server.URL + "/exec?command=sh")
	if err != nil {
		t.Fatal(err)
	}
	var logged, out strings.Builder
	klog.LogToStderr(false)
	klog.SetOutput(&logged)
	defer func() { klog.LogToStderr(true); klog.SetOutput(os.Stderr) }()
	err = Join(t.Context(), &clientrest.Config{Host: server.URL}, address, Streams{In: strings.NewReader("hello"), Out: &out, Err: &out})
	klog.Flush()
	if err == nil {
		t.Error("no error")
	}
	if logged.Len() > 0 || out.Len() > 0 {
		t.Errorf("logged %q, written %q", logged.String(), out.String())
	}
}

// What client-go reports of a forwarded connection is a line for people, not one of its log.
func TestWhatEndsAForwardedConnectionIsALine(t *testing.T) {
	var logged, out strings.Builder
	klog.LogToStderr(false)
	klog.SetOutput(&logged)
	defer func() { klog.LogToStderr(true); klog.SetOutput(os.Stderr) }()
	runtime.HandleErrorWithLogger(logr.New(lines{&out}), errors.New("refused\x1b[2J "), "An error occurred forwarding", "localPort", 8080, "remotePort", 80)
	klog.Flush()
	if want := "An error occurred forwarding, localPort 8080, remotePort 80: refused^[2J\n"; out.String() != want || logged.Len() > 0 {
		t.Errorf("written %q, logged %q", out.String(), logged.String())
	}
	out.Reset()
	runtime.HandleErrorWithLogger(logr.New(lines{&out}), nil, "Observed a panic")
	if want := "Observed a panic\n"; out.String() != want {
		t.Errorf("without an error: %q", out.String())
	}
}

// A user who types the detach keys has left, however the connection ends then; what is
// typed into no terminal is not looked at.
func TestDetachedIsNoLostServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(breaksOff))
	defer server.Close()
	address, err := url.Parse(server.URL + "/attach")
	if err != nil {
		t.Fatal(err)
	}
	for _, tty := range []bool{true, false} {
		s := Streams{In: strings.NewReader("\x10\x11"), Out: &strings.Builder{}, TTY: tty, Detach: []byte{0x10, 0x11}}
		err := Join(t.Context(), &clientrest.Config{Host: server.URL}, address, s)
		if got := errors.Is(err, ErrDetached); got != tty || err == nil {
			t.Errorf("with a terminal %t: %v", tty, err)
		}
	}
}
