package failure

import (
	"net/http"
	"net/http/httptest"
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
