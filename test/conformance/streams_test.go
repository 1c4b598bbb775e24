package conformance_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	exitcode "k8s.io/client-go/util/exec"
)

var streams = []behaviour{
	{"Pods should support remote command execution over websockets", execOverWebSocket},
	{"Pods should support retrieving logs from the container over websockets", logsOverWebSocket},
	// Not one of upstream's tests, but what kubectl up to 1.30 does.
	{"exec over SPDY", execOverSPDY},
	{"attach", attaches},
	// The only way for clients behind a proxy that lets no SPDY pass.
	{"exec over WebSockets alone", execWithoutSPDY},
	{"port-forward over WebSockets alone", forwardWithoutSPDY},
}

// dial opens a WebSocket to a path of the API server.
func (w *world) dial(path string, query url.Values, protocol string) *websocket.Conn {
	w.t.Helper()
	config := w.Config("admin")
	secure, err := rest.TLSConfigFor(config)
	w.must(err)
	secure.NextProtos = []string{"http/1.1"} // HTTP/2 has no such upgrade
	target, err := url.Parse(config.Host)
	w.must(err)
	target.Scheme, target.Path, target.RawQuery = "wss", path, query.Encode()
	connection, err := (&websocket.Config{
		Location: target, Origin: &url.URL{Scheme: "https", Host: target.Host}, Version: websocket.ProtocolVersionHybi13,
		TlsConfig: secure, Protocol: []string{protocol}, Header: http.Header{},
	}).DialContext(w.ctx)
	if err != nil {
		w.t.Fatalf("dial %s: %v", target, err)
	}
	w.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// messages calls take with every message until the WebSocket ends.
func messages(connection *websocket.Conn, take func(message []byte)) {
	for {
		var message []byte
		if websocket.Message.Receive(connection, &message) != nil {
			return
		}
		take(message)
	}
}

// execOverWebSocket speaks the plain protocol: the first byte of every message
// is its channel.
func execOverWebSocket(w *world) {
	w.start(w.lasting("served"))
	connection := w.dial("/api/v1/namespaces/"+w.ns+"/pods/served/exec", url.Values{
		"stdout": {"1"}, "stderr": {"1"}, "container": {"c"}, "command": {"sh", "-c", "echo remote execution; echo problem >&2"}}, "v4.channel.k8s.io")
	channels := map[byte]string{}
	messages(connection, func(message []byte) {
		if len(message) > 0 {
			channels[message[0]] += string(message[1:])
		}
	})
	if channels[1] != "remote execution\n" || channels[2] != "problem\n" || !strings.Contains(channels[3], `"Success"`) {
		w.t.Errorf("the channels had %q", channels)
	}
}

func logsOverWebSocket(w *world) {
	w.output(w.script("logging", "echo container is alive"))
	for _, protocol := range []string{"binary.k8s.io", "base64.binary.k8s.io"} {
		connection := w.dial("/api/v1/namespaces/"+w.ns+"/pods/logging/log", url.Values{"container": {"c"}}, protocol)
		var text bytes.Buffer
		messages(connection, func(message []byte) {
			if strings.HasPrefix(protocol, "base64") {
				decoded, err := base64.StdEncoding.DecodeString(string(message))
				w.must(err)
				message = decoded
			}
			text.Write(message)
		})
		if text.String() != "container is alive\n" {
			w.t.Errorf("the log by %s is %q", protocol, text.String())
		}
	}
}

func execOverSPDY(w *world) {
	w.start(w.lasting("served"))
	request := w.client.CoreV1().RESTClient().Post().Namespace(w.ns).Resource("pods").Name("served").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "c", Command: []string{"cat"}, Stdin: true, Stdout: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(w.Config("admin"), "POST", request.URL())
	w.must(err)
	var out bytes.Buffer
	w.must(executor.StreamWithContext(w.ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("there and back"), Stdout: &out}))
	if out.String() != "there and back" {
		w.t.Errorf("it printed %q", out.String())
	}
}

func attaches(w *world) {
	for name, executor := range map[string]func(*url.URL) (remotecommand.Executor, error){
		"spdy": func(to *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(w.Config("admin"), "POST", to)
		},
		"websocket": w.webSocket,
	} {
		// The runtime passes input on before it listens for output: hence the pause
		// after the first line.
		pod := w.script(name, "read line; sleep 1; echo heard $line; read line; echo heard $line")
		pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].StdinOnce = true, true
		w.start(pod)
		request := w.client.CoreV1().RESTClient().Post().Namespace(w.ns).Resource("pods").Name(name).SubResource("attach").
			VersionedParams(&corev1.PodAttachOptions{Container: "c", Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec)
		attached, err := executor(request.URL())
		w.must(err)
		in, feed := io.Pipe()
		defer feed.Close()
		go func() { _, _ = io.WriteString(feed, "a word\nanother\n") }()
		var out bytes.Buffer
		w.must(attached.StreamWithContext(w.ctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Stderr: io.Discard}))
		if out.String() != "heard a word\nheard another\n" {
			w.t.Errorf("over %s it printed %q", name, out.String())
		}
	}
}

func (w *world) webSocket(to *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewWebSocketExecutor(w.Config("admin"), "GET", to.String())
}

// execWithoutSPDY: the end of the input, exit codes, and the size of terminals.
func execWithoutSPDY(w *world) {
	w.start(w.lasting("served"))
	exec := func(o corev1.PodExecOptions, s remotecommand.StreamOptions) error {
		o.Container, o.Stdout = "c", true
		request := w.client.CoreV1().RESTClient().Get().Namespace(w.ns).Resource("pods").Name("served").SubResource("exec").
			VersionedParams(&o, scheme.ParameterCodec)
		executor, err := w.webSocket(request.URL())
		w.must(err)
		return executor.StreamWithContext(w.ctx, s)
	}
	var out, problems bytes.Buffer
	err := exec(corev1.PodExecOptions{Stdin: true, Stderr: true, Command: []string{"sh", "-c", "wc -l; echo problem >&2; exit 7"}},
		remotecommand.StreamOptions{Stdin: strings.NewReader("one\ntwo\n"), Stdout: &out, Stderr: &problems})
	var coded exitcode.CodeExitError
	if !errors.As(err, &coded) || coded.Code != 7 || out.String() != "2\n" || problems.String() != "problem\n" {
		w.t.Errorf("it printed %q, %q and ended with %v", out.String(), problems.String(), err)
	}
	out.Reset()
	typing, keys := io.Pipe() // nobody types
	defer keys.Close()
	size := make(terminal, 1)
	size <- remotecommand.TerminalSize{Width: 91, Height: 37}
	// The size comes after the command has started.
	err = exec(corev1.PodExecOptions{Stdin: true, TTY: true, Command: []string{"sh", "-c",
		`until [ "$(stty size 2>/dev/null)" = "37 91" ]; do sleep 0.1; done; echo seen`}},
		remotecommand.StreamOptions{Stdin: typing, Stdout: &out, Tty: true, TerminalSizeQueue: size})
	if err != nil || out.String() != "seen\r\n" {
		w.t.Errorf("on a terminal it printed %q and ended with %v", out.String(), err)
	}
}

// terminal is a queue with one size and no more.
type terminal chan remotecommand.TerminalSize

func (t terminal) Next() *remotecommand.TerminalSize {
	size := <-t
	return &size
}

func forwardWithoutSPDY(w *world) {
	served := w.start(w.demo("served"))
	w.logged("served", served.Spec.Containers[0].Name, "listening on")
	address := w.client.CoreV1().RESTClient().Get().Namespace(w.ns).Resource("pods").Name("served").SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, w.Config("admin"))
	w.must(err)
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewForStreaming(dialer, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	w.must(err)
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		w.t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	w.must(err)
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 { // each makes a connection of its own
		answer, err := plain.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
		w.must(err)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(text), "hello from pod served") {
			w.t.Errorf("it answered %q, %v", text, err)
		}
	}
	close(stop)
	w.must(<-ended)
}
