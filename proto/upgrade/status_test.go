package upgrade

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// lateWriter writes the status with the first byte or flush, as gin's writer does.
type lateWriter struct {
	http.ResponseWriter
	status int
}

func (w *lateWriter) WriteHeader(code int) { w.status = code }

func (w *lateWriter) writeStatus() {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
		w.status = 0
	}
}

func (w *lateWriter) Write(p []byte) (int, error) {
	w.writeStatus()
	return w.ResponseWriter.Write(p)
}

func (w *lateWriter) Flush() {
	w.writeStatus()
	w.ResponseWriter.(http.Flusher).Flush()
}

// TestStatusThatIsNone: a backend's status that can't be passed on is an error, and no panic. Behind
// gin, which writes the status late, the panic ended the process.
func TestStatusThatIsNone(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 %s Odd\r\nContent-Length: 2\r\n\r\n{}", strings.TrimPrefix(r.URL.Path, "/"))
	}))
	defer backend.Close()
	to, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Serve(proxy, &lateWriter{ResponseWriter: w}, r)
	}))
	defer front.Close()
	for status, want := range map[string]string{
		"000": "502 answered with 0, which is not an HTTP status\n",
		"042": "502 answered with 42, which is not an HTTP status\n",
		"099": "502 answered with 99, which is not an HTTP status\n",
		"200": "200 {}", "404": "404 {}", "999": "999 {}",
	} {
		answer, err := http.Get(front.URL + "/" + status)
		if err != nil {
			t.Errorf("%s: %v", status, err)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if got := fmt.Sprintf("%d %s", answer.StatusCode, body); got != want {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
	}
}
