package status

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestWrite(t *testing.T) {
	const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	for accepts, want := range map[string]struct{ media, begins string }{
		"":                          {"application/json", `{"kind":"Status"`},
		"*/*":                       {"application/json", `{"kind":"Status"`},
		table:                       {"application/json", `{"kind":"Status"`},
		table + ",application/yaml": {"application/yaml", "apiVersion: v1\n"},
		"application/yaml":          {"application/yaml", "apiVersion: v1\n"},
		"application/json;q=0.1,application/vnd.kubernetes.protobuf": {"application/vnd.kubernetes.protobuf", "k8s\x00"},
		"text/html": {"application/json", `{"kind":"Status"`},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accepts)
		w := httptest.NewRecorder()
		Write(w, r, apierrors.NewTooManyRequests("not now", 7))
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "7" {
			t.Errorf("%s: %d, Retry-After %q", accepts, w.Code, w.Header().Get("Retry-After"))
		}
		if got := w.Header().Get("Content-Type"); got != want.media || !strings.HasPrefix(w.Body.String(), want.begins) {
			t.Errorf("%s: %s %q", accepts, got, w.Body)
		}
	}
}

// TestForPeople: for tools whose output people read, errors are indented, as
// upstream, unless the request says otherwise.
func TestForPeople(t *testing.T) {
	for _, c := range []struct {
		agent, target, accepts string
		laidOut                bool
	}{
		{"curl/8.5.0", "/", "*/*", true},
		{"Mozilla/5.0 (X11)", "/", "text/html", true},
		{"curl/8.5.0", "/?pretty=false", "*/*", false},
		{"kubectl/v1.37.0", "/", "application/json", false},
		{"kubectl/v1.37.0", "/?pretty=true", "application/json", true},
		{"kubectl/v1.37.0", "/", "application/json;pretty=1", true},
	} {
		r := httptest.NewRequest(http.MethodGet, c.target, nil)
		r.Header.Set("Accept", c.accepts)
		r.Header.Set("User-Agent", c.agent)
		w := httptest.NewRecorder()
		Write(w, r, apierrors.NewTooManyRequests("not now", 7))
		if got := strings.HasPrefix(w.Body.String(), "{\n  \"kind\": \"Status\",\n"); got != c.laidOut {
			t.Errorf("%+v: %s", c, w.Body)
		}
		if length := w.Header().Get("Content-Length"); length != strconv.Itoa(w.Body.Len()) {
			t.Errorf("%+v: Content-Length %s of %d bytes", c, length, w.Body.Len())
		}
	}
}
