package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/eventually"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// watchedAPI is an API server with one config map, ns/m, that can be watched by its name.
type watchedAPI struct {
	t      *testing.T
	server *httptest.Server

	mu                    sync.Mutex
	revision              int
	object                *core.ConfigMap // nil for none
	changed               chan event      // to the open watch
	gets, lists, watching int
	away                  bool
	forbid                int // how many gets are refused
}

type event struct {
	Type   watch.Type      `json:"type"`
	Object *core.ConfigMap `json:"object"`
}

// newWatchedAPI returns an API with the config map, and an Objects that runs.
func newWatchedAPI(t *testing.T, object *core.ConfigMap) (*watchedAPI, *Objects) {
	a := &watchedAPI{t: t, revision: 8, changed: make(chan event, 100)}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	client, err := rest.New(&rest.Config{Host: a.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if object != nil {
		a.put(object)
		<-a.changed
	}
	o := New(client, clock.RealClock{}, kubeletv1beta1.WatchChangeDetectionStrategy, zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = o.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return a, o
}

func (a *watchedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away {
		panic(http.ErrAbortHandler)
	}
	byName := r.URL.Query().Get("fieldSelector") == "metadata.name=m"
	switch {
	case r.URL.Path == mapPath && a.forbid > 0:
		a.forbid--
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(schema.GroupResource{}, "m", errors.New("no relationship found")).Status())
	case r.URL.Path == mapPath:
		if a.gets++; a.object == nil {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(schema.GroupResource{}, "m").Status())
			return
		}
		_ = json.NewEncoder(w).Encode(a.object)
	case !byName:
		a.t.Errorf("asked for %s", r.URL)
	case r.URL.Query().Has("watch"):
		if seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); seconds < 1800 {
			a.t.Errorf("a watch of one object for %d s only", seconds)
		}
		a.watching++
		a.mu.Unlock()
		a.watch(w, r)
		a.mu.Lock()
		a.watching--
	default:
		a.lists++
		list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
		if list.ResourceVersion = strconv.Itoa(a.revision); a.object != nil {
			list.Items = append(list.Items, *a.object)
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (a *watchedAPI) watch(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	for {
		select {
		case e := <-a.changed:
			_ = json.NewEncoder(w).Encode(e)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// put changes the config map; nil deletes it.
func (a *watchedAPI) put(object *core.ConfigMap) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision++
	kind := watch.Modified
	switch {
	case object == nil:
		kind, object = watch.Deleted, a.object.DeepCopy()
		a.object = nil
	case a.object == nil:
		kind, a.object = watch.Added, object
	default:
		a.object = object
	}
	object.ResourceVersion = strconv.Itoa(a.revision)
	a.changed <- event{kind, object}
}

func (a *watchedAPI) setAway() {
	a.mu.Lock()
	a.away = true
	a.mu.Unlock()
	a.server.CloseClientConnections()
}

func (a *watchedAPI) counts() (gets, lists, watching int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gets, a.lists, a.watching
}

// waitForWatches waits until so many watches are open.
func (a *watchedAPI) waitForWatches(n int) {
	a.t.Helper()
	eventually.Holds(a.t, fmt.Sprint(n, " open watches"), func() bool { _, _, watching := a.counts(); return watching == n })
}

func configMap(value string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Data: map[string]string{"k": value}}
}

func TestWhatPodsReferToIsWatched(t *testing.T) {
	a, o := newWatchedAPI(t, configMap("1"))
	o.Register(pod("a"))
	if got := value(t, o); got != "1" {
		t.Errorf("at first %q", got)
	}
	a.waitForWatches(1)
	before, _, _ := a.counts()
	a.put(configMap("2"))
	eventually.Holds(t, "the change", func() bool { return value(t, o) == "2" })
	a.put(nil)
	eventually.Holds(t, "the deletion", func() bool { _, err := o.ConfigMap(t.Context(), "ns", "m"); return apierrors.IsNotFound(err) })
	if _, err := o.ConfigMap(t.Context(), "ns", "m"); err == nil || err.Error() != `configmap "m" not found` {
		t.Errorf("of what is not there: %v", err)
	}
	a.put(configMap("3"))
	eventually.Holds(t, "the creation", func() bool { m, err := o.ConfigMap(t.Context(), "ns", "m"); return err == nil && m.Data["k"] == "3" })
	if after, _, _ := a.counts(); after != before {
		t.Errorf("what is watched was asked for %d times", after-before)
	}
	o.Register(pod("b"))
	value(t, o)
	if after, lists, watching := a.counts(); after != before+1 || lists != 1 || watching != 1 {
		t.Errorf("for another pod %d requests, then %d lists and %d watches", after-before, lists, watching)
	}
	o.Unregister("a")
	o.Unregister("b")
	a.waitForWatches(0)
}

func TestWhatIsNotThereIsWatched(t *testing.T) {
	a, o := newWatchedAPI(t, nil)
	o.Register(pod("a"))
	a.waitForWatches(1)
	missing := func() { _, err := o.ConfigMap(t.Context(), "ns", "m"); assertMissing(t, err) }
	missing()
	before, _, _ := a.counts()
	missing()
	if after, _, _ := a.counts(); after != before {
		t.Error("it was asked for, though the watch would tell")
	}
	a.put(configMap("1"))
	eventually.Holds(t, "the creation", func() bool { _, err := o.ConfigMap(t.Context(), "ns", "m"); return err == nil })
	a.put(nil)
	eventually.Holds(t, "the deletion", func() bool { _, err := o.ConfigMap(t.Context(), "ns", "m"); return err != nil })
	a.setAway()
	o.Renew("a")
	missing()
}

func assertMissing(t *testing.T, err error) {
	t.Helper()
	if !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
}

func TestImmutableIsNotWatched(t *testing.T) {
	immutable := configMap("1")
	immutable.Immutable = new(true)
	a, o := newWatchedAPI(t, immutable)
	o.Register(pod("a"))
	value(t, o)
	o.configMaps.watches.Wait()
	if gets, lists, _ := a.counts(); gets != 1 || lists != 0 {
		t.Errorf("%d requests and %d lists", gets, lists)
	}
}

func TestTheWatchOfWhatBecomesImmutableEnds(t *testing.T) {
	a, o := newWatchedAPI(t, configMap("1"))
	o.Register(pod("a"))
	a.waitForWatches(1)
	immutable := configMap("2")
	immutable.Immutable = new(true)
	a.put(immutable)
	a.waitForWatches(0)
	o.configMaps.watches.Wait()
	if got := value(t, o); got != "2" {
		t.Errorf("%q is left", got)
	}
}

// A node authorizer that does not know the pod yet refuses at first.
func TestAWatchWaitsForTheAuthorizer(t *testing.T) {
	a, o := newWatchedAPI(t, configMap("1"))
	a.forbid = 3
	o.Register(pod("a"))
	if got := value(t, o); got != "1" {
		t.Errorf("got %q", got)
	}
	a.waitForWatches(1)
}

// While the API is away, pods that have seen the object go on with it; another pod might
// get what is older than itself.
func TestWhatIsWatchedIsServedInAnOutage(t *testing.T) {
	a, o := newWatchedAPI(t, configMap("2"))
	o.Register(pod("a")) // and nobody reads it before the outage, as a pull secret
	a.waitForWatches(1)
	a.setAway()
	a.waitForWatches(0)
	if got := value(t, o); got != "2" {
		t.Errorf("in the outage %q", got)
	}
	o.Renew("a")
	if got := value(t, o); got != "2" {
		t.Errorf("in the outage, when a newer one is wanted, %q", got)
	}
	o.Register(pod("b"))
	if _, err := o.ConfigMap(t.Context(), "ns", "m"); err == nil {
		t.Error("a new pod got what may be older than itself")
	}
}

// What was read once is served in an outage by the strategy Cache, but not by Get.
func TestStrategiesInAnOutage(t *testing.T) {
	for _, strategy := range []Strategy{kubeletv1beta1.TTLCacheChangeDetectionStrategy, kubeletv1beta1.GetChangeDetectionStrategy} {
		a, o := newAPI(t)
		o = New(o.client, a.clock, strategy, zap.NewNop())
		if err := o.Run(t.Context()); err != nil {
			t.Error(err) // there is nothing to watch
		}
		a.put("1")
		o.Register(pod("a"))
		value(t, o)
		a.put("2")
		get := strategy == kubeletv1beta1.GetChangeDetectionStrategy
		if got := value(t, o); got == "2" != get {
			t.Errorf("%s: at once %q", strategy, got)
		}
		a.clock.SetTime(a.clock.Now().Add(ttl))
		if got := value(t, o); got != "2" {
			t.Errorf("%s: after a while %q", strategy, got)
		}
		a.clock.SetTime(a.clock.Now().Add(ttl))
		a.mu.Lock()
		a.refuse = true
		a.mu.Unlock()
		if m, err := o.ConfigMap(t.Context(), "ns", "m"); (err != nil) != get {
			t.Errorf("%s: in an outage %v, %v", strategy, m, err)
		}
	}
}

// What was deleted is not served in a later outage.
func TestWhatIsGoneIsNotServedInAnOutage(t *testing.T) {
	a, o := newAPI(t)
	a.put("1")
	o.Register(pod("a"))
	value(t, o)
	a.mu.Lock()
	delete(a.objects, mapPath)
	a.mu.Unlock()
	a.clock.SetTime(a.clock.Now().Add(ttl))
	_, err := o.ConfigMap(t.Context(), "ns", "m")
	assertMissing(t, err)
	a.mu.Lock()
	a.refuse = true
	a.mu.Unlock()
	if m, err := o.ConfigMap(t.Context(), "ns", "m"); err == nil {
		t.Errorf("it is served: %v", m)
	}
}

// Requests and the watch overtake each other: what is kept never becomes older, and what
// the watch says is gone does not come back by an answer to an earlier request.
func TestRequestsAndWatchesOvertakeEachOther(t *testing.T) {
	version := func(n int) *core.ConfigMap {
		m := configMap(strconv.Itoa(n))
		m.ResourceVersion = strconv.Itoa(n)
		return m
	}
	for _, c := range []struct {
		name string
		do   func(f *follower[*core.ConfigMap], answered func(version int))
		want string // "" for none
		ask  bool   // the next pod's read makes a request
	}{
		{"a list", func(f *follower[*core.ConfigMap], _ func(int)) { f.Replace([]*core.ConfigMap{version(7)}) }, "7", false},
		{"a list of none", func(f *follower[*core.ConfigMap], _ func(int)) { f.Replace(nil) }, "", false},
		{"an older event", func(f *follower[*core.ConfigMap], answered func(int)) {
			f.Replace(nil)
			answered(10)
			f.Apply(watch.Modified, version(9))
		}, "10", false},
		{"an older deletion", func(f *follower[*core.ConfigMap], answered func(int)) {
			f.Replace([]*core.ConfigMap{version(7)})
			answered(10)
			f.Apply(watch.Deleted, version(9))
		}, "10", false},
		{"an older list", func(f *follower[*core.ConfigMap], answered func(int)) {
			answered(10)
			f.Replace([]*core.ConfigMap{version(9)})
		}, "9", true},
		{"an older list of none", func(f *follower[*core.ConfigMap], answered func(int)) {
			answered(10)
			f.Replace(nil)
		}, "", true},
		{"an older answer", func(f *follower[*core.ConfigMap], answered func(int)) {
			f.Replace([]*core.ConfigMap{version(11)})
			answered(10)
		}, "11", false},
	} {
		cache := New(nil, clock.RealClock{}, kubeletv1beta1.WatchChangeDetectionStrategy, zap.NewNop()).configMaps
		name := types.NamespacedName{Namespace: "ns", Name: "m"}
		cache.addReference(name)
		e := cache.entries[name]
		f := &follower[*core.ConfigMap]{cache: cache, entry: e, wanted: e.wanted}
		c.do(f, func(n int) {
			cache.land(name, e, &flight[*core.ConfigMap]{asked: e.wanted, lost: e.lost, value: version(n)}, cache.clock.Now())
		})
		got := ""
		if e.has {
			got = e.value.Data["k"]
		}
		if got != c.want || cache.fresh(e) == c.ask {
			t.Errorf("%s: %q is kept, and fresh: %t", c.name, got, cache.fresh(e))
		}
	}

	cache := New(nil, clock.RealClock{}, kubeletv1beta1.WatchChangeDetectionStrategy, zap.NewNop()).configMaps
	name := types.NamespacedName{Namespace: "ns", Name: "m"}
	cache.addReference(name)
	e := cache.entries[name]
	f := &follower[*core.ConfigMap]{cache: cache, entry: e, wanted: e.wanted}
	f.Replace([]*core.ConfigMap{version(10)})
	early := &flight[*core.ConfigMap]{asked: e.wanted, lost: e.lost, value: version(10)}
	f.Apply(watch.Deleted, version(12))
	if cache.land(name, e, early, cache.clock.Now()); e.has {
		t.Error("what was deleted is back")
	}
}
