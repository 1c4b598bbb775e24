package critest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Registry serves images on localhost over plain HTTP, which runtimes accept
// there. It is read-only: images come from Push.
type Registry struct {
	// User and Password are required from clients if they are set.
	User, Password string

	server *httptest.Server
	mu     sync.Mutex
	blobs  map[string][]byte // by digest
	tags   map[string][]byte // manifests by name:tag
	pulls  map[string]int    // of manifests, by name:tag
}

// NewRegistry serves until the test ends.
func NewRegistry(t testing.TB) *Registry {
	r := &Registry{blobs: map[string][]byte{}, tags: map[string][]byte{}, pulls: map[string]int{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// Push makes an image available as name:tag, and returns its reference.
func (r *Registry) Push(t testing.TB, nameAndTag string, image Image) string {
	t.Helper()
	b, err := image.blobs()
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, blob := range [][]byte{b.manifest, b.config, b.layer} {
		r.blobs[digest(blob)] = blob
	}
	r.tags[nameAndTag] = b.manifest
	return r.Reference(nameAndTag)
}

// Reference is how to pull name:tag from here.
func (r *Registry) Reference(nameAndTag string) string {
	return r.server.Listener.Addr().String() + "/" + nameAndTag
}

// Pulls is how often the image was pulled.
func (r *Registry) Pulls(nameAndTag string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulls[nameAndTag]
}

// ServeHTTP answers /v2/, /v2/NAME/manifests/REFERENCE and
// /v2/NAME/blobs/DIGEST (OCI distribution specification).
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if user, password, _ := request.BasicAuth(); user != r.User || password != r.Password {
		w.Header().Set("WWW-Authenticate", `Basic realm="critest"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	rest := strings.TrimPrefix(request.URL.Path, "/v2/")
	if rest == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	content := r.blobs[rest[strings.LastIndexByte(rest, '/')+1:]]
	if name, tag, ok := strings.Cut(rest, "/manifests/"); ok {
		w.Header().Set("Content-Type", manifestType)
		if m := r.tags[name+":"+tag]; m != nil {
			content = m
			r.pulls[name+":"+tag]++
		}
	}
	if content == nil {
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"not here"}]}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest(content))
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	if request.Method != http.MethodHead {
		_, _ = w.Write(content) // it is not the registry's fault if the client went away
	}
}
