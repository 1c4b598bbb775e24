package kubelet

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// testAPI is the part of an API server that a kubelet needs, in memory: it
// lists, watches, creates, updates, patches and deletes (pods gracefully).
// Unlike a real one, it can be made to fail.
type testAPI struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	revision int
	objects  map[string]map[string]any // by path
	history  []change
	changed  chan struct{} // closed at the next change
	away     bool
	refuses  func(r *http.Request, body []byte) bool // which writes fail; nil for none
	around   func(r *http.Request, serve func())     // serves each request; nil for at once
	read     map[string]bool                         // paths that were read, or after "watch " watched
	answered int                                     // requests since it was last away
	stamps   []relay.Stamp
	restarts map[string][]relay.Restart // by path, as they came
}

type change struct {
	kind     string // ADDED, MODIFIED, DELETED
	path     string
	revision int
	object   map[string]any
}

func newTestAPI(t testing.TB) *testAPI {
	a := &testAPI{t: t, objects: map[string]map[string]any{}, read: map[string]bool{}, changed: make(chan struct{})}
	a.server = httptest.NewTLSServer(a)
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

// kubeconfig writes a kubeconfig for the API.
func (a *testAPI) kubeconfig() string {
	path := filepath.Join(a.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],
"users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`, a.server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func (a *testAPI) setAway(away bool) {
	a.mu.Lock()
	a.away, a.answered = away, 0
	a.mu.Unlock()
	if away {
		a.server.CloseClientConnections()
	}
}

// wasRead says whether a path was read.
func (a *testAPI) wasRead(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.read[path]
}

// sinceAway is how many requests came since the API was last away.
func (a *testAPI) sinceAway() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered
}

func (a *testAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	away, around := a.away, a.around
	a.answered++
	if stamps, err := relay.Decode(r.Header.Get(relay.Header)); err == nil {
		a.stamps = append(a.stamps, stamps...)
	}
	if restarts, err := relay.DecodeRestarts(r.Header.Get(relay.RestartHeader)); err == nil && len(restarts) > 0 {
		if a.restarts == nil {
			a.restarts = map[string][]relay.Restart{}
		}
		a.restarts[r.URL.Path] = append(a.restarts[r.URL.Path], restarts...)
	}
	a.mu.Unlock()
	if away {
		panic(http.ErrAbortHandler)
	}
	if around != nil {
		around(r, func() { a.serve(w, r) })
		return
	}
	a.serve(w, r)
}

func (a *testAPI) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/status")
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		a.mu.Lock()
		a.read["watch "+path] = true
		a.mu.Unlock()
		a.watch(w, r)
	case r.Method == http.MethodGet:
		a.mu.Lock()
		a.read[path] = true
		a.mu.Unlock()
		a.get(w, r)
	case r.Method == http.MethodPost:
		a.create(w, r)
	default:
		a.write(w, r, path)
	}
}

// collectionPath says whether path is that of a collection; an object's path
// also has the object's name.
func collectionPath(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	i := slices.Index(parts, "namespaces")
	rest := parts[2:]
	if parts[0] == "apis" {
		rest = parts[3:]
	}
	if i >= 0 && len(parts) > i+2 {
		rest = parts[i+2:]
	}
	return len(rest) == 1
}

// within says whether the object at path belongs to a collection, which may
// span all namespaces.
func within(path, collection string) bool {
	dir, resource := filepath.Dir(path), filepath.Base(collection)
	return dir == collection || filepath.Base(dir) == resource && !strings.Contains(collection, "/namespaces/")
}

func selected(object map[string]any, selector string) bool {
	key, value, ok := strings.Cut(selector, "=")
	if !ok {
		return true
	}
	var at any = object
	for part := range strings.SplitSeq(key, ".") {
		m, _ := at.(map[string]any)
		at = m[part]
	}
	return at == value
}

func (a *testAPI) get(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !collectionPath(r.URL.Path) {
		object, ok := a.objects[r.URL.Path]
		if !ok {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		answer(w, object)
		return
	}
	items := []any{}
	for path, object := range a.objects {
		if within(path, r.URL.Path) && selected(object, r.URL.Query().Get("fieldSelector")) {
			items = append(items, object)
		}
	}
	kind := "List"
	for _, watched := range []core.Resource{core.Pods, core.Nodes, core.Services, core.RuntimeClasses, core.Secrets, core.ConfigMaps} {
		if watched.Name == filepath.Base(r.URL.Path) {
			kind = watched.Kind + kind
		}
	}
	answer(w, map[string]any{"kind": kind, "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.revision)}, "items": items})
}

func (a *testAPI) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	flusher := w.(http.Flusher)
	w.Header().Set("Content-Type", "application/json")
	flusher.Flush()
	for {
		a.mu.Lock()
		changed, history := a.changed, a.history
		a.mu.Unlock()
		for _, c := range history {
			if c.revision > from && within(c.path, r.URL.Path) && selected(c.object, r.URL.Query().Get("fieldSelector")) {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": c.kind, "object": c.object})
			}
			from = max(from, c.revision)
		}
		flusher.Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *testAPI) create(w http.ResponseWriter, r *http.Request) {
	var object map[string]any
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	meta := object["metadata"].(map[string]any)
	a.mu.Lock()
	defer a.mu.Unlock()
	path := r.URL.Path + "/" + fmt.Sprint(meta["name"])
	if _, exists := a.objects[path]; exists {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	}
	meta["uid"] = string(uuid.NewUUID())
	meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	a.store("ADDED", path, object)
	w.WriteHeader(http.StatusCreated)
	answer(w, object)
}

// add creates a pod without a request.
func (a *testAPI) add(pod *core.Pod) {
	pod.UID = uuid.NewUUID()
	data, err := json.Marshal(pod)
	var object map[string]any
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store("ADDED", core.Pods.Path(pod.Namespace, pod.Name), object)
}

// store keeps the object under a new revision; a.mu is held.
func (a *testAPI) store(kind, path string, object map[string]any) {
	a.revision++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(a.revision)
	if kind == "DELETED" {
		delete(a.objects, path)
	} else {
		a.objects[path] = object
	}
	data, _ := json.Marshal(object)
	var copied map[string]any
	_ = json.Unmarshal(data, &copied)
	a.history = append(a.history, change{kind: kind, path: path, revision: a.revision, object: copied})
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *testAPI) write(w http.ResponseWriter, r *http.Request, path string) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuses != nil && a.refuses(r, body) {
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		return
	}
	old, ok := a.objects[path]
	if !ok {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if r.Method == http.MethodDelete {
		a.remove(w, path, old, body)
		return
	}
	before, _ := json.Marshal(old)
	after, err := body, error(nil)
	if r.Method == http.MethodPatch {
		after, err = patched(r.Header.Get("Content-Type"), path, before, body)
	}
	var object map[string]any
	if err == nil {
		err = json.Unmarshal(after, &object)
	}
	if err != nil {
		a.t.Errorf("%s %s: %v", r.Method, path, err)
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	if object["metadata"].(map[string]any)["uid"] != old["metadata"].(map[string]any)["uid"] {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	a.store("MODIFIED", path, object)
	answer(w, object)
}

func patched(contentType, path string, before, patch []byte) ([]byte, error) {
	if contentType == string(types.MergePatchType) {
		return jsonpatch.MergePatch(before, patch)
	}
	if strings.Contains(path, "/nodes/") {
		return strategicpatch.StrategicMergePatch(before, patch, corev1.Node{})
	}
	return strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
}

// remove deletes an object at once, or marks a pod as deleted until its kubelet
// has ended it.
func (a *testAPI) remove(w http.ResponseWriter, path string, object map[string]any, body []byte) {
	var options metav1.DeleteOptions
	_ = json.Unmarshal(body, &options)
	if p := options.Preconditions; p != nil && p.UID != nil && string(*p.UID) != object["metadata"].(map[string]any)["uid"] {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	grace := int64(0)
	if strings.Contains(path, "/pods/") {
		grace = 30
	}
	if options.GracePeriodSeconds != nil {
		grace = *options.GracePeriodSeconds
	}
	if grace == 0 {
		a.store("DELETED", path, object)
		answer(w, object)
		return
	}
	meta := object["metadata"].(map[string]any)
	meta["deletionTimestamp"] = time.Now().Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
	meta["deletionGracePeriodSeconds"] = grace
	a.store("MODIFIED", path, object)
	answer(w, object)
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reason,
	})
}
