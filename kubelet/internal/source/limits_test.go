package source

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/yamlsize"
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
	// 10 MB of these took 840 MB.
	for name, text := range map[string]string{
		"lines": "- a\n", "carriage returns": "- a\r", "lines of Unicode": "- a\u2028", "lists in lists": "- [[]]\n",
		"one list": "- [" + strings.Repeat("a,", maxTokens) + "]\n",
	} {
		if _, err := decodePods([]byte(strings.Repeat(text, maxTokens/strings.Count(text+",", ",")+1))); err == nil ||
			!strings.Contains(err.Error(), "lines, names and values") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	long := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","args":["` +
		strings.Repeat("{},[]", maxTokens) + `"]}]}}`
	if pods, err := decodePods([]byte(long)); err != nil || len(pods) != 1 {
		t.Errorf("a long argument: %v", err)
	}
}

// A megabyte with aliases took gigabytes.
func TestManifestsOfAliases(t *testing.T) {
	const small = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n  labels: {a: &a %s, b: *a}\nspec:\n  containers:\n  - {name: c, image: i, args: [%s]}\n"
	if pods, err := decodePods(fmt.Appendf(nil, small, "b", "*a, *a")); err != nil || pods[0].Labels["b"] != "b" {
		t.Errorf("aliases: %v, %v", pods, err)
	}
	if _, err := decodePods(fmt.Appendf(nil, small, strings.Repeat("b", maxManifest/100), strings.Repeat("*a, ", 100))); !errors.Is(err, yamlsize.ErrAliases) {
		t.Errorf("many aliases of a long text: %v", err)
	}
}

// A file that is read again is decoded only if it has changed.
func TestManifestsThatStayAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.yaml")
	watched, logs := observer.New(zap.WarnLevel)
	file := &File{Path: path, NodeName: "n", Clock: clock.RealClock{}, Logger: zap.New(watched)}
	manifests := map[string]manifestFile{}
	read := func(text string) *core.Pod {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		pods, err := file.read(manifests)
		if err != nil || len(pods) != 1 {
			t.Fatalf("%v, %v", pods, err)
		}
		return pods[0]
	}
	first := read(manifest)
	if read(manifest) != first {
		t.Error("the same content was decoded again")
	}
	for range 2 {
		if read("kind: Broken") != first {
			t.Error("a manifest that can't be read has another pod than before")
		}
	}
	if logs.Len() != 1 {
		t.Errorf("log lines about a broken manifest: %v", logs.All())
	}
	if other := read(strings.ReplaceAll(manifest, "web", "other")); other.Name != "other-n" {
		t.Errorf("the pod of changed content is %s", other.Name)
	}
	if read(manifest) == first {
		t.Error("content of long ago was kept")
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
		"status":  "HTTP/1.1 500 " + strings.Repeat("s", rest.MaxAnswerHeaders/2) + "\r\n\r\n",
		"headers": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*rest.MaxAnswerHeaders) + "\r\n\r\n",
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
	h := &HTTP{
		URL:      server.URL,
		Header:   http.Header{"X-Token": {"secret"}},
		NodeName: "n",
		Clock:    clock.RealClock{},
		Logger:   zap.NewNop(),
		Client:   NewClient(time.Minute),
	}
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
