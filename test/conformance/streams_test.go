package conformance_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

var streams = []behaviour{
	{"Pods should support remote command execution over websockets", execOverWebSocket},
	{"Pods should support retrieving logs from the container over websockets", logsOverWebSocket},
	// Not upstream's lines, but what kubectl up to 1.30 does.
	{"exec over SPDY", execOverSPDY},
	{"attach", attaches},
}

// dial opens a WebSocket to a path of the API server.
func (w *world) dial(path string, query url.Values, protocol string) *websocket.Conn {
	w.t.Helper()
	config := w.Config("admin")
	secure, err := rest.TLSConfigFor(config)
	w.must(err)
	secure.NextProtos = []string{"http/1.1"} // there are no WebSockets in HTTP/2
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

// messages reads to the end of a WebSocket.
func messages(connection *websocket.Conn, take func(message []byte)) {
	for {
		var message []byte
		if websocket.Message.Receive(connection, &message) != nil {
			return
		}
		take(message)
	}
}

// execOverWebSocket speaks the plain protocol itself: every message begins with
// the number of its channel.
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
	pod := w.script("attached", "read line; echo heard $line; sleep 0.2")
	pod.Spec.Containers[0].Stdin, pod.Spec.Containers[0].StdinOnce = true, true
	w.start(pod)
	request := w.client.CoreV1().RESTClient().Post().Namespace(w.ns).Resource("pods").Name("attached").SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: "c", Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(w.Config("admin"), "POST", request.URL())
	w.must(err)
	in, feed := io.Pipe()
	defer feed.Close()
	go func() { _, _ = io.WriteString(feed, "a word\n") }()
	var out bytes.Buffer
	w.must(executor.StreamWithContext(w.ctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Stderr: io.Discard}))
	if out.String() != "heard a word\n" {
		w.t.Errorf("it printed %q", out.String())
	}
}
