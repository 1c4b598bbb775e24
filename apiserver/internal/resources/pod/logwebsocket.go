package pod

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
)

// The protocols in which a log can be read over a WebSocket: plain bytes, or
// base64 for clients that support only text.
const (
	binaryProtocol = "binary.k8s.io"
	base64Protocol = "base64.binary.k8s.io"
)

// sendLog answers with a log: in the messages of a WebSocket if the client
// asked for one, otherwise as text. stop ends body early, once the client is
// gone.
func sendLog(w http.ResponseWriter, r *http.Request, body io.Reader, stop func()) {
	if !wsstream.IsWebSocketRequest(r) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
		copyFlushing(w, body)
		return
	}
	websocket.Server{Handshake: chooseLogProtocol, Handler: func(socket *websocket.Conn) {
		// Only reading shows that a hijacked connection has ended. Closing the
		// socket, when this handler returns, ends the goroutine.
		go func() {
			defer stop()
			_, _ = io.Copy(io.Discard, socket)
		}()
		// Errors are as in copyFlushing.
		_, _ = io.Copy(logMessages{socket}, body)
	}}.ServeHTTP(w, r)
}

func chooseLogProtocol(config *websocket.Config, _ *http.Request) error {
	if len(config.Protocol) == 0 {
		return nil
	}
	for _, protocol := range []string{binaryProtocol, base64Protocol} {
		if slices.Contains(config.Protocol, protocol) {
			config.Protocol = []string{protocol}
			return nil
		}
	}
	return errors.New("logs are sent by " + binaryProtocol + " or " + base64Protocol)
}

// logMessages writes each piece of a log as a message.
type logMessages struct{ socket *websocket.Conn }

func (m logMessages) Write(piece []byte) (int, error) {
	var message any = piece
	if protocol := m.socket.Config().Protocol; len(protocol) > 0 && protocol[0] == base64Protocol {
		message = base64.StdEncoding.EncodeToString(piece)
	}
	if err := websocket.Message.Send(m.socket, message); err != nil {
		return 0, err
	}
	return len(piece), nil
}
