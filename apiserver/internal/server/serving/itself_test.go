package serving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"kctl/apiserver/internal/authn"
	"kctl/proto/core"
)

// TestItself: requests over its connections, and no others, are the server's own. They are many, since
// on gRPC's bufconn about one of a thousand failed, whose deadlines may end a later read than they
// were set for.
func TestItself(t *testing.T) {
	itself := NewItself()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- itself.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			connection := http.NewResponseController(w) // as filters.Pace
			late := time.Now().Add(time.Hour)
			if err := errors.Join(connection.SetReadDeadline(late), connection.SetWriteDeadline(late)); err != nil {
				t.Error(err)
			}
			body, err := io.ReadAll(r.Body)
			user, ok, _ := authn.Itself{}.Authenticate(r)
			if err != nil || !ok {
				http.Error(w, fmt.Sprintf("user %v, body %v", ok, err), http.StatusBadRequest)
				return
			}
			_, _ = fmt.Fprintf(w, "%s, %d bytes", user.Username, len(body))
		}))
	}()
	transport := &http.Transport{DialTLSContext: itself.Dial, MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var group sync.WaitGroup
	for n := range 16 {
		group.Go(func() {
			review := make([]byte, 10+n*6000)
			for range 300 {
				answer, err := client.Post("https://any/apis/x", "text/plain", bytes.NewReader(review))
				if err != nil {
					t.Error(err)
					return
				}
				said, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if want := fmt.Sprintf("%s, %d bytes", core.UserAPIServer, len(review)); err != nil || string(said) != want {
					t.Errorf("%q, %v, want %q", said, err, want)
				}
			}
		})
	}
	group.Wait()
	if _, ok, _ := (authn.Itself{}).Authenticate(&http.Request{Header: http.Header{"Authorization": {"Bearer x"}}}); ok {
		t.Error("a request from elsewhere is the server's own")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := itself.Dial(t.Context(), "tcp", "any:443"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a connection after the end: %v", err)
	}
}
