package handlers

import (
	"io"
	"iter"
	"net/http"
	"time"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
)

// overSocket sends events as messages of a WebSocket: text, or bytes where the
// client wants protobuf. end ends the watch once the client has gone. There is
// nobody to tell an error to.
func (s *stream) overSocket(events iter.Seq2[registry.WatchEvent, bool], end func()) {
	websocket.Server{Handshake: firstProtocol, Handler: func(socket *websocket.Conn) {
		// A hijacked connection's end is seen by reading it only. Closing the
		// socket, when this handler returns, ends the goroutine.
		go func() {
			defer end()
			_, _ = io.Copy(io.Discard, socket)
		}()
		for event := range events {
			message, err := s.message(event)
			if err == nil {
				err = socket.SetWriteDeadline(time.Now().Add(eventPatience))
			}
			if err == nil {
				err = websocket.Message.Send(socket, message)
			}
			if err != nil {
				return
			}
		}
	}}.ServeHTTP(s.gin.Writer, s.gin.Request)
}

// message is the event as a message has it, which needs no length before it.
func (s *stream) message(event registry.WatchEvent) (any, error) {
	framed, err := s.frame(event)
	if err != nil {
		return nil, err
	}
	if s.form.media == runtime.ContentTypeProtobuf {
		return framed[lengthBytes:], nil
	}
	return string(framed), nil
}

// firstProtocol agrees to what the client likes best: events are the same in all
// of them.
func firstProtocol(config *websocket.Config, _ *http.Request) error {
	if len(config.Protocol) > 1 {
		config.Protocol = config.Protocol[:1]
	}
	return nil
}

// expired is what a watch consists of whose revision is gone.
func expired(err error) iter.Seq2[registry.WatchEvent, bool] {
	return func(yield func(registry.WatchEvent, bool) bool) {
		yield(cache.ErrorEvent(err), false)
	}
}
