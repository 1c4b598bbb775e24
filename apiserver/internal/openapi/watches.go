package openapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Upstream's words of the deprecation.
const (
	listsOld   = ". deprecated: use the 'watch' parameter with a list operation instead"
	objectsOld = listsOld + ", filtered to a single item with the 'fieldSelector' parameter."
)

// watches are the paths that contain "watch", which are deprecated but still used.
func (b *builder) watches() {
	if !b.info.Serves("watch") {
		return
	}
	kind := b.info.Kind
	list := operation{action: "watchlist", id: b.id("watch", true, "") + "List", description: "watch individual changes to a list of " + kind + listsOld + "."}
	b.watch(b.path(true), list)
	if b.info.Namespaced {
		list.id = b.id("watch", false, "") + "ListForAllNamespaces"
		b.watch(b.path(false), list)
	}
	b.watch(b.path(true, "{name}"), operation{
		action: "watch", id: b.id("watch", true, ""), description: "watch changes to an object of kind " + kind + objectsOld,
	})
}

// watch adds the path that watches what is at path.
func (b *builder) watch(path string, op operation) {
	root := "/" + documentName(b.group.version)
	old := root + "/watch" + strings.TrimPrefix(path, root)
	// The parameters belong to the path, not to the operation, as in upstream.
	b.group.pathParameters[old] = sorted(append(slices.Clone(b.group.pathParameters[path]), listParameters...))
	event := b.definitions.add(reflect.TypeFor[metav1.WatchEvent]())
	b.definitions.mark(event, b.group.version.WithKind("WatchEvent"))
	op.method, op.produces, op.answer, op.codes = http.MethodGet, listTypes, &schema{ref: event}, []int{http.StatusOK}
	b.add(old, op)
}
