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
	listWatchDeprecated   = ". deprecated: use the 'watch' parameter with a list operation instead"
	objectWatchDeprecated = listWatchDeprecated + ", filtered to a single item with the 'fieldSelector' parameter."
)

// addWatches adds the paths that contain "watch", which are deprecated but still used.
func (b *builder) addWatches() {
	if !b.info.Serves("watch") {
		return
	}
	kind := b.info.Kind
	list := operation{
		action: "watchlist", id: b.operationID("watch", "") + "List",
		description: "watch individual changes to a list of " + kind + listWatchDeprecated + ".",
	}
	b.addWatch(b.path(), list)
	if b.info.Namespaced {
		all := b.acrossNamespaces()
		list.id = all.operationID("watch", "") + "ListForAllNamespaces"
		all.addWatch(all.path(), list)
	}
	b.addWatch(b.path("{name}"), operation{
		action: "watch", id: b.operationID("watch", ""), description: "watch changes to an object of kind " + kind + objectWatchDeprecated,
	})
}

// addWatch adds the path that watches what is at path.
func (b *builder) addWatch(path string, op operation) {
	root := "/" + documentName(b.group.version)
	old := root + "/watch" + strings.TrimPrefix(path, root)
	// The parameters belong to the path, not to the operation, as in upstream.
	b.group.pathParameters[old] = sortParameters(append(slices.Clone(b.group.pathParameters[path]), listParameters...))
	event := b.definitions.define(reflect.TypeFor[metav1.WatchEvent]())
	b.definitions.addKind(event, b.group.version.WithKind("WatchEvent"))
	op.method, op.produces, op.answer, op.codes = http.MethodGet, listTypes, &schema{ref: event}, []int{http.StatusOK}
	b.add(old, op)
}
