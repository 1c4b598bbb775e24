package pod

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// runs is a kubelet that speaks only SPDY, and closes the connection as soon as
// the command has ended.
func runs(t *testing.T, run func(map[string]httpstream.Stream)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "SPDY/3.1" {
			http.Error(w, "no WebSocket here", http.StatusForbidden)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io", "portforward.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		arrived := make(chan httpstream.Stream, 5)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			arrived <- s
			return nil
		})
		if connection == nil {
			t.Error("not upgraded")
			return
		}
		defer connection.Close()
		streams := map[string]httpstream.Stream{}
		for len(streams) < 3 {
			select {
			case s := <-arrived:
				streams[s.Headers().Get("streamType")] = s
			case <-connection.CloseChan():
				return
			}
		}
		run(streams)
	}
}

// echo is a command that copies its input to its output, and then reports
// success.
func echo(streams map[string]httpstream.Stream) {
	text, err := io.ReadAll(streams["stdin"])
	if err != nil {
		return
	}
	fmt.Fprintf(streams["stdout"], "heard %s", text)
	fmt.Fprint(streams["error"], `{"status":"Success"}`)
}

func socket(t *testing.T, front, path, protocol string) (*websocket.Conn, error) {
	t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(front, "http")+path, front)
	if err != nil {
		t.Fatal(err)
	}
	config.Protocol = []string{protocol}
	return config.DialContext(t.Context())
}

func TestExecOverWebSocket(t *testing.T) {
	front := serve(t, runs(t, echo))
	connection, err := socket(t, front, "/web/exec?command=cat&stdin=true&stdout=true", "v5.channel.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	connection.PayloadType = websocket.BinaryFrame
	for _, message := range [][]byte{append([]byte{0}, "hello"...), {255, 0}} { // the input, and its end
		if _, err := connection.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	got := channels(connection)
	if got[1] != "heard hello" || got[3] != `{"status":"Success"}` {
		t.Errorf("%q", got)
	}
}

// TestKubeletsThatFallSilent: a client that goes ends the connection to the
// kubelet, however far the kubelet has come.
func TestKubeletsThatFallSilent(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	for stage, kubelet := range map[string]http.HandlerFunc{
		"before it upgrades": func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
			close(ended)
		},
		"before it answers to a stream": func(w http.ResponseWriter, _ *http.Request) {
			connection, buffer, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n")
			buffer.Flush()
			if _, err := buffer.ReadByte(); err != nil { // of the first stream
				t.Error(err)
			}
			close(asked)
			_, _ = io.Copy(io.Discard, buffer)
			close(ended)
		},
	} {
		asked, ended = make(chan struct{}), make(chan struct{})
		front := serve(t, kubelet)
		client, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(client,
			"GET /web/exec?command=cat&stdout=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "+
				"websocket\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n")
		<-asked
		_ = client.Close()
		t.Log(stage)
		<-ended
	}
}

// channels reads everything that a container sends.
func channels(connection *websocket.Conn) map[byte]string {
	got := map[byte]string{}
	for {
		var message []byte
		if err := websocket.Message.Receive(connection, &message); err != nil {
			return got
		}
		if len(message) > 0 {
			got[message[0]] += string(message[1:])
		}
	}
}

// TestTheLastWordsOfAContainerArrive: the container ends, and its connection
// with it, while the client still sends.
func TestTheLastWordsOfAContainerArrive(t *testing.T) {
	said := strings.Repeat("said at last\n", 5000)
	front := serve(t, runs(t, func(streams map[string]httpstream.Stream) {
		fmt.Fprint(streams["stdout"], said)
		fmt.Fprint(streams["error"], `{"status":"Success"}`)
	}))
	for range 50 {
		connection, err := socket(t, front, "/web/exec?command=cat&stdin=true&stdout=true", "v5.channel.k8s.io")
		if err != nil {
			t.Fatal(err)
		}
		connection.PayloadType = websocket.BinaryFrame
		go func() {
			for err := error(nil); err == nil; {
				_, err = connection.Write([]byte("\x00more"))
			}
		}()
		if got := channels(connection); got[1] != said || got[3] != `{"status":"Success"}` {
			t.Errorf("%d of %d bytes arrived, and %q", len(got[1]), len(said), got[3])
		}
		_ = connection.Close()
	}
}

// TestTheLastWordsOfAClientArrive: the client closes as soon as it has sent
// them.
func TestTheLastWordsOfAClientArrive(t *testing.T) {
	said, heard := strings.Repeat("said at last\n", 5000), make(chan string, 1)
	front := serve(t, runs(t, func(streams map[string]httpstream.Stream) {
		fmt.Fprint(streams["stdout"], "talking")
		text, err := io.ReadAll(streams["stdin"])
		if err != nil {
			t.Error(err)
		}
		heard <- string(text)
	}))
	for range 50 {
		connection, err := socket(t, front, "/web/exec?command=cat&stdin=true&stdout=true", "v4.channel.k8s.io")
		if err != nil {
			t.Fatal(err)
		}
		connection.PayloadType = websocket.BinaryFrame
		if _, err := connection.Write([]byte("\x00" + said)); err != nil {
			t.Fatal(err)
		}
		_ = connection.Close()
		if text := <-heard; text != said {
			t.Errorf("%d of %d bytes arrived", len(text), len(said))
		}
	}
}

func TestExecOverWebSocketRefused(t *testing.T) {
	front := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such container", http.StatusNotFound) })
	if connection, err := socket(t, front, "/web/exec?command=cat&stdout=true", "v5.channel.k8s.io"); err == nil {
		_ = connection.Close()
		t.Error("a refusal of the kubelet's was upgraded")
	}
}

func TestPortForwardTunnel(t *testing.T) {
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Stream-Protocol-Version") != "portforward.k8s.io" {
			t.Errorf("%v", r.Header)
		}
		connection, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		_ = buffer.Flush()
		line, _ := buffer.ReadString('\n')
		fmt.Fprintf(buffer, "heard %s", line)
		_ = buffer.Flush()
	})
	connection, err := socket(t, front, "/web/portforward", "SPDY/3.1+portforward.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	connection.PayloadType = websocket.BinaryFrame
	if _, err := connection.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(connection)
	if string(text) != "heard hello\n" {
		t.Errorf("%q", text)
	}
}
