package handlers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dial opens a watch over a WebSocket.
func (s *server) dial(query, accept string, protocols ...string) (*websocket.Conn, error) {
	s.t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(s.URL, "http")+collection+"?watch=true&"+query, s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	config.Protocol = protocols
	config.Header.Set("Accept", accept)
	socket, err := websocket.DialConfig(config)
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { _ = socket.Close() })
	if err := socket.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	return socket, nil
}

// messages receives one message, and whether it is text.
var messages = websocket.Codec{Unmarshal: func(data []byte, kind byte, into any) error {
	*into.(*message) = message{kind == websocket.TextFrame, bytes.Clone(data)}
	return nil
}}

type message struct {
	text bool
	data []byte
}

func TestWatchOverWebSocket(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	for _, protocols := range [][]string{nil, {"binary.k8s.io"}, {"base64.binary.k8s.io", "other"}} {
		socket, err := s.dial("", "application/json", protocols...)
		if err != nil {
			t.Fatal(err)
		}
		if agreed := socket.Config().Protocol; len(agreed) > 1 || len(agreed) == 1 && agreed[0] != protocols[0] {
			t.Errorf("asked for %v, agreed to %v", protocols, agreed)
		}
		var got message
		if err := messages.Receive(socket, &got); err != nil {
			t.Fatal(err)
		}
		var event metav1.WatchEvent
		if err := json.Unmarshal(got.data, &event); err != nil || !got.text || event.Type != "ADDED" || !bytes.Contains(event.Object.Raw, []byte(made.UID)) {
			t.Errorf("%v: %v %s", protocols, err, got.data)
		}
	}
}

func TestWatchOverWebSocketInProtobuf(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	socket, err := s.dial("timeoutSeconds=1", "application/vnd.kubernetes.protobuf")
	if err != nil {
		t.Fatal(err)
	}
	var got message
	if err := messages.Receive(socket, &got); err != nil {
		t.Fatal(err)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(got.data); err != nil || got.text || event.Type != "ADDED" {
		t.Errorf("%v %v %q", err, event.Type, got.data)
	}
	if err := messages.Receive(socket, &got); !errors.Is(err, io.EOF) {
		t.Errorf("after timeoutSeconds: %v", err)
	}
}

// TestRefusedWatchOverWebSocket: a bad watch request is refused before the
// upgrade.
func TestRefusedWatchOverWebSocket(t *testing.T) {
	s := start(t)
	if _, err := s.dial("resourceVersion=x", ""); err == nil || !strings.Contains(err.Error(), "bad status") {
		t.Errorf("%v", err)
	}
}
