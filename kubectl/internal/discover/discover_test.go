package discover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/rest"
)

// The same resources in aggregated and in unaggregated discovery.
const (
	aggregatedAPI = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
  {"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","shortNames":["po"],"categories":["all"],"verbs":["get","list"],
   "subresources":[{"subresource":"log","verbs":["get"]}]},
  {"resource":"events","responseKind":{"kind":"Event"},"scope":"Namespaced","singularResource":"event","shortNames":["ev"],"verbs":["list"]}]}]}]}`
	aggregatedAPIs = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
 {"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","resources":[
  {"resource":"events","responseKind":{"kind":"Event"},"scope":"Namespaced","singularResource":"event","shortNames":["ev"],"verbs":["list"]}]}]},
 {"metadata":{"name":"example.org"},"versions":[{"version":"v2","resources":[
  {"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","singularResource":"thing","verbs":["get"]}]},
  {"version":"v1","resources":[
  {"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","singularResource":"thing","verbs":["get"]}]}]}]}`
)

var legacy = map[string]string{
	"/api": `{"kind":"APIVersions","versions":["v1"]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
  {"name":"pods","kind":"Pod","namespaced":true,"singularName":"pod","shortNames":["po"],"categories":["all"],"verbs":["get","list"]},
  {"name":"pods/log","kind":"Pod","namespaced":true,"verbs":["get"]},
  {"name":"events","kind":"Event","namespaced":true,"shortNames":["ev"],"verbs":["list"]}]}`,
	"/apis": `{"kind":"APIGroupList","groups":[
  {"name":"events.k8s.io","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}},
  {"name":"example.org","versions":[{"version":"v1"},{"version":"v2"}],"preferredVersion":{"version":"v2"}}]}`,
	"/apis/events.k8s.io/v1": `{"kind":"APIResourceList","resources":[{"name":"events","kind":"Event","namespaced":true,"shortNames":["ev"],"verbs":["list"]}]}`,
	"/apis/example.org/v2":   `{"kind":"APIResourceList","resources":[{"name":"things","kind":"Thing","verbs":["get"]}]}`,
	"/apis/example.org/v1":   `{"kind":"APIResourceList","resources":[{"name":"things","kind":"Thing","verbs":["get"]}]}`,
}

// server answers from a map of paths, and counts the requests.
type server struct {
	answers  map[string]string
	requests int
}

func (s *server) start(t *testing.T) *rest.Client {
	t.Helper()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests++
		answer, ok := s.answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(listener.Close)
	client, err := rest.New(&rest.Config{Host: listener.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestNamed(t *testing.T) {
	cases := map[string]string{ // name → group/version/resource, "" for none
		"pods": "/v1/pods", "pod": "/v1/pods", "po": "/v1/pods", "Pods": "/v1/pods",
		"ev": "/v1/events", "events.events.k8s.io": "events.k8s.io/v1/events", "events.v1.events.k8s.io": "events.k8s.io/v1/events",
		"things": "example.org/v2/things", "things.example.org": "example.org/v2/things", "things.v1.example.org": "example.org/v1/things",
		"thing.v2.example.org": "example.org/v2/things", "pods.v1.": "/v1/pods",
		"Thing.example.org": "example.org/v2/things", "things.exam": "example.org/v2/things",
		"nothing": "", "pods.v1": "", "pods.example.org": "", "things.v3.example.org": "",
	}
	for way, answers := range map[string]map[string]string{"aggregated": {"/api": aggregatedAPI, "/apis": aggregatedAPIs}, "legacy": legacy} {
		s := &server{answers: answers}
		discovery := New(s.start(t), Cache{})
		for name, want := range cases {
			found, err := discovery.Named(context.Background(), name)
			var unknown *NoResourceError
			if want == "" {
				if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "the server doesn't have a resource type") {
					t.Errorf("%s: %s: %v", way, name, err)
				}
				continue
			}
			if got := found.Group + "/" + found.Version + "/" + found.Name; err != nil || got != want {
				t.Errorf("%s: %s: got %s, %v, want %s", way, name, got, err, want)
			}
		}
		pods, err := discovery.Named(context.Background(), "pods")
		if err != nil || !pods.Has("log") || !pods.Can("list") || pods.Can("delete") || !pods.Namespaced {
			t.Errorf("%s: pods are %+v, %v", way, pods, err)
		}
		if all, err := discovery.InCategory(context.Background(), "all"); err != nil || len(all) != 1 {
			t.Errorf("%s: category all is %v, %v", way, all, err)
		}
	}
}

func TestOfKind(t *testing.T) {
	s := &server{answers: legacy}
	discovery := New(s.start(t), Cache{})
	found, err := discovery.OfKind(context.Background(), schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"})
	if err != nil || found.Name != "things" || found.Version != "v1" {
		t.Errorf("got %+v, %v", found, err)
	}
	_, err = discovery.OfKind(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "Thing"})
	if err == nil || err.Error() != `no matches for kind "Thing" in version "v1"` {
		t.Errorf("got %v", err)
	}
}

func TestCache(t *testing.T) {
	s := &server{answers: map[string]string{"/api": aggregatedAPI, "/apis": aggregatedAPIs}}
	client := s.start(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	cache := Cache{Dir: filepath.Join(t.TempDir(), "deep", "dir"), Clock: clock}
	asked := func(what, name string, want int) {
		t.Helper()
		s.requests = 0
		_, err := New(client, cache).Named(context.Background(), name)
		if err != nil && name != "later" {
			t.Fatal(err)
		}
		if s.requests != want {
			t.Errorf("%s: %d requests, want %d", what, s.requests, want)
		}
	}
	asked("cold", "pods", 2)
	asked("warm", "pods", 0)
	asked("a name that the file does not have", "later", 2)
	clock.SetTime(clock.Now().Add(expiry))
	asked("old", "pods", 2)
	if err := os.WriteFile(filepath.Join(cache.Dir, cacheFile), []byte(`{"writtenAt":`), 0o600); err != nil {
		t.Fatal(err)
	}
	asked("broken", "pods", 2)
	clock.SetTime(clock.Now().Add(-time.Hour))
	asked("from the future", "pods", 2)
	if err := os.Remove(filepath.Join(cache.Dir, cacheFile)); err != nil {
		t.Fatal(err)
	}
	asked("forgotten", "pods", 2)
	files, err := os.ReadDir(cache.Dir)
	if err != nil || len(files) != 1 {
		t.Errorf("files left: %v, %v", files, err)
	}
}

func TestNotAKubernetesServer(t *testing.T) {
	for name, answers := range map[string]map[string]string{
		"HTML":    {"/api": "<html>hello</html>"},
		"other":   {"/api": `{"kind":"Other"}`},
		"nothing": {},
	} {
		s := &server{answers: answers}
		_, err := New(s.start(t), Cache{}).Named(context.Background(), "pods")
		if err == nil || !strings.Contains(err.Error(), "is it a Kubernetes API server?") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
