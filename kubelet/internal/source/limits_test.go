package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

// 9 MB of empty items took 7 GB.
func TestManifestsThatGrow(t *testing.T) {
	for name, text := range map[string]string{
		"empty pods":         `{"apiVersion":"v1","kind":"PodList","items":[{}` + strings.Repeat(",{}", maxTokens) + `]}`,
		"empty containers":   `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{}` + strings.Repeat(",{}", maxTokens) + `]}}`,
		"names":              "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n" + "    a: b\nx: [" + strings.Repeat("a,", maxTokens) + "]\n",
		"lists within lists": `{"apiVersion":"v1","kind":"Pod","x":[` + strings.Repeat("[],", maxTokens) + `[]]}`,
	} {
		if _, err := decodePods([]byte(text)); err == nil || !strings.Contains(err.Error(), "names and values") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	long := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","args":["` + strings.Repeat("{},[]", maxTokens) + `"]}]}}`
	if pods, err := decodePods([]byte(long)); err != nil || len(pods) != 1 {
		t.Errorf("a long argument: %v", err)
	}
}

// JSON is not read as YAML, but as strictly.
func TestManifestsInJSON(t *testing.T) {
	const good = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	if pods, err := decodePods([]byte(good)); err != nil || pods[0].Name != "x" {
		t.Errorf("%v, %v", pods, err)
	}
	for text, want := range map[string]string{
		strings.Replace(good, `"name":"x"`, `"name":"x","name":"y"`, 1): "name",
		strings.Replace(good, `"image"`, `"imago"`, 1):                  "imago",
		strings.Replace(good, `"kind"`, `"kind":"Pod","kind"`, 1):       "kind",
		"[]": "not an object",
	} {
		if _, err := decodePods([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %s", text, err, want)
		}
	}
}

// Quantities are where a pod has them, and not wherever a name looks like it.
func TestHugeQuantities(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","annotations":{"limits":"1e1000"}},"spec":{"containers":[{"name":"c","image":"i"%s}]}}`
	for _, kind := range []string{text, `{"apiVersion":"v1","kind":"PodList","items":[` + text + `]}`} {
		if pods, err := decodePods(fmt.Appendf(nil, kind, "")); err != nil || len(pods) != 1 {
			t.Errorf("an annotation: %v", err)
		}
		if _, err := decodePods(fmt.Appendf(nil, kind, `,"resources":{"limits":{"cpu":"1e1000"}}`)); err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("a limit: error %v", err)
		}
	}
}

// What a server answers is short, whatever it is.
func TestManifestServersThatTalkTooMuch(t *testing.T) {
	for name, answer := range map[string]string{
		"status":  "HTTP/1.1 500 " + strings.Repeat("s", maxHeaders/2) + "\r\n\r\n",
		"headers": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHeaders) + "\r\n\r\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, b, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprint(b, answer)
			_ = b.Flush() // the client may have gone
			_ = c.Close()
		}))
		h := &HTTP{URL: server.URL, NodeName: "n", Clock: clock.RealClock{}, Logger: zap.NewNop(), Client: NewClient(time.Minute)}
		if _, _, err := h.read(t.Context(), nil); err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: error %.200v", name, err)
		}
		server.Close()
	}
}

// Nor are they sent over plain HTTP after HTTPS.
func TestManifestServersThatRedirectToPlainHTTP(t *testing.T) {
	for to, want := range map[string]string{"http://named/x": "", "https://named/x": "secret"} {
		from, request := httptest.NewRequest("GET", "https://named/", nil), httptest.NewRequest("GET", to, nil)
		request.Header.Set("X-Token", "secret")
		if err := withoutHeaders(request, []*http.Request{from}); err != nil || request.Header.Get("X-Token") != want {
			t.Errorf("%s: %v, %v", to, request.Header, err)
		}
	}
}

// The headers of --manifest-url-header are for the server that the flag names.
func TestManifestServersThatRedirect(t *testing.T) {
	var got http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		fmt.Fprint(w, manifest)
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/here", http.StatusFound)
		case "/here":
			if r.Header.Get("X-Token") != "secret" {
				t.Error("the header is missing after a redirect on the same server")
			}
			http.Redirect(w, r, other.URL, http.StatusFound)
		default:
			http.Redirect(w, r, "/round", http.StatusFound)
		}
	}))
	defer server.Close()
	h := &HTTP{URL: server.URL, Header: http.Header{"X-Token": {"secret"}}, NodeName: "n", Clock: clock.RealClock{}, Logger: zap.NewNop(), Client: NewClient(time.Minute)}
	if _, pods, err := h.read(t.Context(), nil); err != nil || len(pods) != 1 {
		t.Fatalf("%v, %v", pods, err)
	}
	if got.Get("X-Token") != "" {
		t.Errorf("another server got %v", got)
	}
	h.URL += "/round"
	if _, _, err := h.read(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("error %v", err)
	}
}
