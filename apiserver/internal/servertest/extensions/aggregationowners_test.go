package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// gadgets are objects of the extension server that can own others and be owned.
type gadgets struct {
	mu       sync.Mutex
	version  int
	objects  map[string]*metav1.PartialObjectMetadata
	watchers map[chan string]bool
}

func (g *gadgets) serve(w http.ResponseWriter, r *http.Request) {
	_, name, _ := strings.Cut(r.URL.Path, "/gadgets")
	name = strings.TrimPrefix(name, "/")
	if name == "" && r.URL.Query().Get("watch") != "" {
		g.watch(w, r)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	found := g.objects[name]
	switch {
	case name == "":
		list := metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(g.version)}}
		for _, name := range slices.Sorted(maps.Keys(g.objects)) {
			if !strings.Contains(r.URL.Path, "/namespaces/") || strings.Contains(r.URL.Path, "/namespaces/"+g.objects[name].Namespace+"/") {
				list.Items = append(list.Items, *g.objects[name])
			}
		}
		writeJSON(w, list)
	case found == nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound,
			Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Name: name},
		})
	case r.Method == http.MethodPatch:
		var patch metav1.PartialObjectMetadata
		if json.NewDecoder(r.Body).Decode(&patch) != nil || patch.UID != found.UID || patch.ResourceVersion != found.ResourceVersion {
			w.WriteHeader(http.StatusConflict)
			return
		}
		found = found.DeepCopy()
		found.OwnerReferences, found.Finalizers = patch.OwnerReferences, patch.Finalizers
		g.put(found)
		writeJSON(w, found)
	case r.Method == http.MethodDelete:
		var options metav1.DeleteOptions
		if json.NewDecoder(r.Body).Decode(&options) == nil && options.Preconditions != nil && *options.Preconditions.UID != found.UID {
			w.WriteHeader(http.StatusConflict)
			return
		}
		delete(g.objects, name)
		g.version++ // or a watch that begins now would not be behind
		g.tell("DELETED", found)
		writeJSON(w, found)
	default:
		writeJSON(w, found)
	}
}

func (g *gadgets) put(o *metav1.PartialObjectMetadata) {
	kind := "ADDED"
	if g.objects[o.Name] != nil {
		kind = "MODIFIED"
	}
	g.version++
	o.ResourceVersion = strconv.Itoa(g.version)
	g.objects[o.Name] = o
	g.tell(kind, o)
}

func (g *gadgets) tell(kind string, o *metav1.PartialObjectMetadata) {
	text, _ := json.Marshal(map[string]any{"type": kind, "object": o})
	for w := range g.watchers {
		w <- string(text)
	}
}

func (g *gadgets) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 1024)
	g.mu.Lock()
	behind := strconv.Itoa(g.version) != r.URL.Query().Get("resourceVersion")
	g.watchers[events] = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watchers, events)
	}()
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for !behind { // no history is kept: a watcher that is behind lists again
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			_, _ = fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		}
	}
}

// gadget creates one in default; its uid is its name.
func (f *federation) gadget(name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	g := f.extension.gadgets
	g.mu.Lock()
	defer g.mu.Unlock()
	g.put(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), OwnerReferences: owners}})
	return metav1.OwnerReference{APIVersion: "far.example.com/v1", Kind: "Gadget", Name: name, UID: types.UID(name)}
}

// owned creates a config map, and returns a reference to it.
func (f *federation) owned(name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	f.T.Helper()
	m := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
	f.Must(f.Root().Resource(core.ConfigMaps, "default").Create(f.T.Context(), m, m))
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: m.UID, BlockOwnerDeletion: new(true)}
}

func (f *federation) deleteMap(name string, policy metav1.DeletionPropagation) {
	f.T.Helper()
	f.Must(f.Root().Resource(core.ConfigMaps, "default").Delete(f.T.Context(), name, &metav1.DeleteOptions{PropagationPolicy: &policy}, nil))
}

func (f *federation) untilMapGone(name string) {
	f.T.Helper()
	f.Until("config map "+name+" is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(f.Root().Resource(core.ConfigMaps, "default").Get(ctx, name, &core.ConfigMap{}))
	})
}

// untilGadget waits until a gadget is gone, or has that many owners.
func (f *federation) untilGadget(name string, gone bool, owners int) {
	f.T.Helper()
	f.Until(fmt.Sprintf("gadget %s is gone: %t, with %d owners", name, gone, owners), func(context.Context) bool {
		g := f.extension.gadgets
		g.mu.Lock()
		defer g.mu.Unlock()
		o := g.objects[name]
		return (o == nil) == gone && (o == nil || len(o.OwnerReferences) == owners)
	})
}

// collects: objects of the extension server are deleted with their owners here,
// and objects here with their owners there.
func (f *federation) collects(*testing.T) {
	f.gadget("of-map", f.owned("one"))
	f.deleteMap("one", metav1.DeletePropagationBackground)
	f.untilGadget("of-map", true, 0)

	f.owned("of-gadget", f.gadget("two"))
	f.want(http.StatusOK, "DELETE", "/apis/far.example.com/v1/namespaces/default/gadgets/two", nil)
	f.untilMapGone("of-gadget")

	f.gadget("orphan", f.owned("three"))
	f.deleteMap("three", metav1.DeletePropagationOrphan)
	f.untilGadget("orphan", false, 0)

	f.gadget("first", f.owned("four"))
	f.deleteMap("four", metav1.DeletePropagationForeground)
	f.untilMapGone("four")
	f.untilGadget("first", true, 0)
}

// cannotCollect: while the extension server is away, nobody knows which of its
// owners are gone, and which of its dependents are left. Call the returned
// function when the server is back: it checks the rest.
func (f *federation) cannotCollect() (back func()) {
	maps := f.Root().Resource(core.ConfigMaps, "default")
	f.owned("waits", metav1.OwnerReference{APIVersion: "far.example.com/v1", Kind: "Gadget", Name: "never", UID: "never"})
	f.deleteMap("held", metav1.DeletePropagationForeground)
	for _, name := range []string{"witness-1", "witness-2"} { // when the second is gone, all before it have been checked
		f.owned(name, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "never"})
		f.untilMapGone(name)
	}
	for _, name := range []string{"waits", "held"} {
		f.Must(maps.Get(f.T.Context(), name, &core.ConfigMap{}))
	}
	return func() {
		f.untilMapGone("waits")
		f.untilGadget("holds", true, 0)
		f.untilMapGone("held")
	}
}
