package kubeletclient

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
)

// TestLargeFramesAreSplit: what a client sends arrives, however long its frames are, and no frame
// that the handler sees is large.
func TestLargeFramesAreSplit(t *testing.T) {
	payload := make([]byte, 6<<20)
	for i := range payload {
		payload[i] = byte(rand.IntN(256))
	}
	type result struct {
		got     []byte
		largest int
	}
	results := make(chan result, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		websocket.Server{Handler: func(socket *websocket.Conn) {
			var all result
			for {
				var frame []byte
				if err := websocket.Message.Receive(socket, &frame); err != nil {
					break
				}
				all.largest = max(all.largest, len(frame))
				if len(frame) == 0 || frame[0] != '3' {
					t.Errorf("%d bytes for the channel %.1q", len(frame), frame)
					continue
				}
				content := frame[1:]
				if r.URL.Path == "/text" {
					decoded, err := base64.StdEncoding.DecodeString(string(content))
					if err != nil {
						t.Error(err)
					}
					content = decoded
				}
				all.got = append(all.got, content...)
			}
			results <- all
		}}.ServeHTTP(framesWriter{w}, r)
	}))
	defer server.Close()
	for _, path := range []string{"/bytes", "/text"} {
		socket, err := websocket.Dial("ws"+strings.TrimPrefix(server.URL, "http")+path, "", server.URL)
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		for _, size := range []int{0, 1, 124, 125, 126, maxFrame - 2, maxFrame - 1, maxFrame, 2*maxFrame - 2, 2*maxFrame - 1, 5<<20 + 3} {
			part := payload[sent : sent+size]
			sent += size
			if path == "/text" {
				err = websocket.Message.Send(socket, "3"+base64.StdEncoding.EncodeToString(part))
			} else {
				err = websocket.Message.Send(socket, append([]byte{'3'}, part...))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := socket.Close(); err != nil {
			t.Fatal(err)
		}
		if all := <-results; !bytes.Equal(all.got, payload[:sent]) || all.largest > maxFrame {
			t.Errorf("%s: %d of %d bytes, the largest frame has %d", path, len(all.got), sent, all.largest)
		}
	}
}

// TestFramesOfNoClient are refused before their payload is read.
func TestFramesOfNoClient(t *testing.T) {
	for name, frame := range map[string]string{
		"not masked": "\x82\x7f\x00\x00\x00\x00\x10\x00\x00\x00",
		"control":    "\x89\xff\x00\x00\x00\x00\x10\x00\x00\x00\x01\x02\x03\x04",
		"endless":    "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04",
		"cut short":  "\x82\xff\x00\x00\x00",
	} {
		split := &frameSplitter{frames: frames{from: bufio.NewReader(strings.NewReader(frame))}}
		if got, err := io.ReadAll(split); err == nil || len(got) > 0 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
