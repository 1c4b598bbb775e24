package extensions

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// serveEnding answers for all namespaces except default: one of them has
// things, until they are deleted as a collection.
func (e *extension) serveEnding(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Method == http.MethodDelete && !e.holds {
		e.ending = 0
	}
	items := []any{}
	if strings.Contains(r.URL.Path, "/namespaces/ending/") {
		for range e.ending {
			items = append(items, map[string]any{"metadata": map[string]any{"name": "x", "finalizers": []string{"far.example.com/hold"}}})
		}
	}
	writeJSON(w, map[string]any{"kind": "ThingList", "apiVersion": "far.example.com/v1", "items": items})
}

// ended deletes a namespace, and waits until the condition says so.
func (f *federation) ended(namespace string, kind corev1.NamespaceConditionType, says string) {
	f.T.Helper()
	f.Namespace(namespace)
	f.want(http.StatusOK, "DELETE", "/api/v1/namespaces/"+namespace, nil)
	f.Until(namespace+": "+says, func(ctx context.Context) bool {
		var now core.Namespace
		if f.Root().Resource(core.Namespaces, "").Get(ctx, namespace, &now) != nil {
			return false
		}
		for _, c := range now.Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, says) {
				return true
			}
		}
		return false
	})
}

func (f *federation) untilGone(namespace string) {
	f.T.Helper()
	f.Until(namespace+" is gone", func(context.Context) bool {
		code, _, _ := f.call("GET", "/api/v1/namespaces/"+namespace, nil)
		return code == http.StatusNotFound
	})
}

// empties: objects on an extension server are deleted with their namespace,
// which waits for those that stay.
func (f *federation) empties(*testing.T) {
	hold := func(things int, holds bool) {
		f.extension.mu.Lock()
		defer f.extension.mu.Unlock()
		f.extension.ending, f.extension.holds = things, holds
	}
	hold(2, true)
	f.ended("ending", corev1.NamespaceContentRemaining, "things.far.example.com has 2 resource instances")
	hold(2, false)
	f.untilGone("ending")
}

// cannotEmpty: while the extension server is unavailable, its objects are
// unknown.
func (f *federation) cannotEmpty() {
	f.ended("stuck", corev1.NamespaceDeletionDiscoveryFailure, "Discovery failed for some groups, 1 failing: "+
		"unable to retrieve the complete list of server APIs: far.example.com/v1: stale GroupVersion discovery: far.example.com/v1")
}
