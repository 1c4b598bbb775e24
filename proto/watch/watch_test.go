package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

func pod(name, uid, revision string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(uid), ResourceVersion: revision}}
}

// script is a server that answers lists and watches as a test says, to cause
// faults. It records the requests.
type script struct {
	t      *testing.T
	mu     sync.Mutex
	asked  []string
	lists  []func(w http.ResponseWriter)
	watchs []func(w http.ResponseWriter, r *http.Request)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	var answer func()
	if q.Get("watch") == "true" {
		s.asked = append(s.asked, "watch from "+q.Get("resourceVersion"))
		if len(s.watchs) > 0 {
			f := s.watchs[0]
			s.watchs = s.watchs[1:]
			answer = func() { f(w, r) }
		}
	} else {
		s.asked = append(s.asked, "list "+q.Get("continue"))
		if len(s.lists) > 0 {
			f := s.lists[0]
			s.lists = s.lists[1:]
			answer = func() { f(w) }
		}
	}
	s.mu.Unlock()
	if answer == nil {
		<-r.Context().Done() // the script is over
		return
	}
	answer()
}

func list(revision, next string, pods ...*core.Pod) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "PodList", "metadata": metav1.ListMeta{ResourceVersion: revision, Continue: next}, "items": pods})
	}
}

func event(kind string, obj any) string {
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, data)
}

// events sends its lines, flushed, and ends the watch.
func events(lines ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, l := range lines {
			_, _ = w.Write([]byte(l))
		}
	}
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func status(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Reason: reason}
}

// run runs a reflector against s until the script's last watch has been
// requested, and returns the calls to the store's handlers.
func run(t *testing.T, s *script, o Options) (told []string, store *Store[*core.Pod]) {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.HTTP().CloseIdleConnections)
	var mu sync.Mutex
	tell := func(what string, p *core.Pod) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what+" "+p.Name+"@"+p.ResourceVersion)
	}
	store = NewStore(nil, Handler[*core.Pod]{
		OnAdd:    func(p *core.Pod) { tell("add", p) },
		OnUpdate: func(_, p *core.Pod) { tell("update", p) },
		OnDelete: func(p *core.Pod) { tell("delete", p) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	o.Backoff = backoff.Policy{Initial: time.Microsecond, Max: time.Microsecond}
	r := NewReflector(client.Resource(core.Pods, ""), func() *core.Pod { return &core.Pod{} }, store, o)
	over := make(chan struct{})
	s.mu.Lock()
	s.watchs = append(s.watchs, func(w http.ResponseWriter, r *http.Request) { close(over); hangs(w, r) })
	s.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	<-over
	select {
	case <-r.Synced():
	default:
		t.Error("Synced is not closed after a list")
	}
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("Run: %v", err)
	}
	return told, store
}

func (s *script) check(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.asked, want) {
		s.t.Errorf("asked for %q, want %q", s.asked, want)
	}
}

func TestListsThenWatchesFromThere(t *testing.T) {
	s := &script{t: t,
		lists: []func(http.ResponseWriter){list("", "next", pod("one", "1", "5")), list("10", "", pod("two", "2", "9"))},
		watchs: []func(http.ResponseWriter, *http.Request){events(
			event("ADDED", pod("three", "3", "11")), event("MODIFIED", pod("one", "1", "12")),
			event("DELETED", pod("two", "2", "13")), event("BOOKMARK", pod("", "", "20")))},
	}
	told, store := run(t, s, Options{})
	want := []string{"add one@5", "add two@9", "add three@11", "update one@12", "delete two@13"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if store.Len() != 2 {
		t.Errorf("%d objects are kept, want 2", store.Len())
	}
	s.check("list ", "list next", "watch from 10", "watch from 20") // the bookmark moved the revision on
}

func TestGoneMeansListAgain(t *testing.T) {
	gone := status(410, metav1.StatusReasonExpired)
	for name, refusal := range map[string]func(http.ResponseWriter, *http.Request){
		"as an event": events(event("ERROR", gone)),
		"as the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(w).Encode(gone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{t: t,
				lists: []func(http.ResponseWriter){
					list("10", "", pod("one", "1", "5"), pod("two", "2", "6")),
					list("30", "", pod("two", "2", "6"), pod("three", "3", "25")),
				},
				watchs: []func(http.ResponseWriter, *http.Request){refusal},
			}
			told, _ := run(t, s, Options{})
			want := []string{"add one@5", "add two@6", "add three@25", "delete one@5"}
			if !slices.Equal(told, want) {
				t.Errorf("told %q, want %q: only what differs", told, want)
			}
			s.check("list ", "watch from 10", "list ", "watch from 30")
		})
	}
}

func TestBrokenWatchResumes(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(event("ADDED", pod("one", "1", "11")) + `{"type":"ADD`))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	s := &script{t: t,
		lists:  []func(http.ResponseWriter){func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, list("10", "")},
		watchs: []func(http.ResponseWriter, *http.Request){cut, refuse, events(event("MODIFIED", pod("one", "1", "12")))},
	}
	logs, lines := observer.New(zap.WarnLevel)
	told, _ := run(t, s, Options{Logger: zap.New(logs)})
	if n := lines.FilterMessageSnippet("broke off").Len(); n != 2 {
		t.Errorf("%d lines say that the watch broke off: there is no list, and then it is cut", n)
	}
	if want := []string{"add one@11", "update one@12"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	s.check("list ", "list ", "watch from 10", "watch from 11", "watch from 11", "watch from 12")
}

// stallClock fires its stall timer at once, and no other.
type stallClock struct {
	clock.RealClock
	after time.Duration
}

func (c stallClock) NewTimer(d time.Duration) clock.Timer {
	if d == c.after {
		d = time.Millisecond
	}
	return c.RealClock.NewTimer(d)
}

func TestStalledWatchIsLeft(t *testing.T) {
	s := &script{t: t,
		lists:  []func(http.ResponseWriter){list("10", "")},
		watchs: []func(http.ResponseWriter, *http.Request){hangs},
	}
	run(t, s, Options{StallAfter: time.Hour, Clock: stallClock{after: time.Hour}})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) < 3 || s.asked[2] != "watch from 10" {
		t.Errorf("asked for %q, want a second watch from 10", s.asked)
	}
}

func TestStoreReplacedObject(t *testing.T) {
	var told []string
	s := NewStore(nil, Handler[*core.Pod]{
		OnAdd:    func(p *core.Pod) { told = append(told, "add "+string(p.UID)) },
		OnUpdate: func(_, p *core.Pod) { told = append(told, "update "+string(p.UID)) },
		OnDelete: func(p *core.Pod) { told = append(told, "delete "+string(p.UID)) },
	})
	s.Apply(Added, pod("web", "1", "5"))
	s.Apply(Modified, pod("web", "2", "9"))
	s.Apply(Deleted, pod("other", "3", "10"))
	s.Apply(Deleted, pod("web", "1", "8")) // late: it was told already, and the new one stays
	if want := []string{"add 1", "delete 1", "add 2"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if kept, ok := s.Get("a", "web"); !ok || kept.UID != "2" {
		t.Errorf("kept: %v", kept)
	}
}

func TestStoreIndex(t *testing.T) {
	byNode := func(p *core.Pod) []string { return []string{p.Spec.NodeName} }
	s := NewStore(map[string]IndexFunc[*core.Pod]{"node": byNode})
	names := func(node string) (out []string) {
		for _, p := range s.ByIndex("node", node) {
			out = append(out, p.Name)
		}
		slices.Sort(out)
		return out
	}
	for i := range 3 {
		p := pod(fmt.Sprint("p", i), fmt.Sprint(i), "1")
		p.Spec.NodeName = "n1"
		s.Apply(Added, p)
	}
	moved := pod("p0", "0", "2")
	moved.Spec.NodeName = "n2"
	s.Apply(Modified, moved)
	s.Apply(Deleted, pod("p1", "1", "3"))
	if got := names("n1"); !slices.Equal(got, []string{"p2"}) {
		t.Errorf("n1 has %q", got)
	}
	if got := names("n2"); !slices.Equal(got, []string{"p0"}) {
		t.Errorf("n2 has %q", got)
	}
	s.Replace(nil)
	if s.Len() != 0 || len(s.indices["node"]) != 0 {
		t.Errorf("an emptied store keeps %d objects and %v", s.Len(), s.indices)
	}
}
