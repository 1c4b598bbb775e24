package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestUnanswered(t *testing.T) {
	for code, want := range map[int]bool{
		http.StatusBadRequest: false, http.StatusForbidden: false, http.StatusNotFound: false, http.StatusConflict: false, http.StatusInternalServerError: false,
		http.StatusRequestTimeout: true, http.StatusTooManyRequests: true, http.StatusBadGateway: true, http.StatusServiceUnavailable: true,
		http.StatusGatewayTimeout: true,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		if err := askedOf(t, server.URL); err == nil || Unanswered(fmt.Errorf("bind: %w", err)) != want {
			t.Errorf("%d: %v is unanswered: %v, want %v", code, err, !want, want)
		}
		server.Close()
	}
	if Unanswered(errors.New("no licence")) {
		t.Error("somebody else's error is taken for no answer")
	}
}

func TestUnansweredByTheNetwork(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"cut before the answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut within the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // only then does the server notice that the client goes
			<-r.Context().Done()
		},
	} {
		server := httptest.NewServer(handler)
		if err := askedOf(t, server.URL); err == nil || !Unanswered(err) {
			t.Errorf("%s: %v is taken for an answer", name, err)
		}
		server.Close()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := askedOf(t, "http://"+listener.Addr().String()); err == nil || !Unanswered(err) {
		t.Errorf("refused connection: %v is taken for an answer", err)
	}
}

// askedOf returns the error of a request to a server.
func askedOf(t *testing.T, url string) error {
	t.Helper()
	client, err := New(&Config{Host: url})
	if err != nil {
		t.Fatal(err)
	}
	defer client.HTTP().CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return client.Do(ctx, http.MethodPost, "/x", []byte("{}"), nil)
}
