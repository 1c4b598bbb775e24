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

// followOverWebSocket sends events as messages of a WebSocket: text, or binary if the
// client wants protobuf. end ends the watch once the client has gone. Errors
// have no one to go to.
func (s *stream) followOverWebSocket(events iter.Seq2[registry.WatchEvent, bool], end func()) {
	websocket.Server{Handshake: firstProtocol, Handler: func(socket *websocket.Conn) {
		// Only reading shows that a hijacked connection has ended. Closing the
		// socket, when this handler returns, ends the goroutine.
		go func() {
			defer end()
			_, _ = io.Copy(io.Discard, socket)
		}()
		for event := range events {
			message, err := s.message(event)
			if err == nil {
				err = socket.SetWriteDeadline(time.Now().Add(eventWriteTimeout))
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

// message is the event as a message, which needs no length prefix.
func (s *stream) message(event registry.WatchEvent) (any, error) {
	framed, err := s.frame(event)
	if err != nil {
		return nil, err
	}
	s.meter.observe(len(framed))
	if s.form.media == runtime.ContentTypeProtobuf {
		return framed[lengthBytes:], nil
	}
	return string(framed), nil
}

// firstProtocol agrees to the client's first choice: events are the same in all
// of them.
func firstProtocol(config *websocket.Config, _ *http.Request) error {
	if len(config.Protocol) > 1 {
		config.Protocol = config.Protocol[:1]
	}
	return nil
}

// errorEvent is the only event of a watch that can't begin: its revision is gone, or not there yet.
func errorEvent(err error) iter.Seq2[registry.WatchEvent, bool] {
	return func(yield func(registry.WatchEvent, bool) bool) {
		yield(cache.ErrorEvent(err), false)
	}
}
