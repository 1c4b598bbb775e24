package filters

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
)

// A client that announces a body and does not send it is not waited for.
func TestPace(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for path, want := range map[string]error{
			"/api/v1/pods":         os.ErrDeadlineExceeded,
			"/api/v1/pods?watch=1": nil, // the stream ends when its client does
		} {
			ended := make(chan error, 1)
			read := make(chan struct{}, 1)
			handler := chain(func(c *gin.Context) {
				read <- struct{}{}
				_, err := io.Copy(io.Discard, c.Request.Body)
				ended <- err
			}, Pace(50*time.Millisecond, zap.NewNop()), Warnings(), Stream(zap.NewNop()))
			server := httptest.NewUnstartedServer(handler)
			server.EnableHTTP2 = http2
			server.StartTLS()
			body, sending := io.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, body)
				if err != nil {
					t.Error(err)
					return
				}
				if answer, err := server.Client().Do(request); err == nil {
					_ = answer.Body.Close()
				}
			}()
			<-read
			if want == nil {
				time.AfterFunc(100*time.Millisecond, func() { _ = sending.Close() })
			}
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("%s, HTTP/2 %v: body ended with %v, want %v", path, http2, err, want)
			}
			_ = sending.Close()
			<-done
			server.Close()
		}
	}
}
