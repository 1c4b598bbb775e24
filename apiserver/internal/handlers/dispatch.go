package handlers

import (
	"maps"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
)

// Dispatcher answers requests for resources that come and go, which can't have
// fixed routes.
type Dispatcher struct{ *handlers }

// NewDispatcher returns a Dispatcher; it ignores o's Resources and CreateOnly.
func NewDispatcher(o Options) *Dispatcher {
	return &Dispatcher{newHandlers(o)}
}

// Serve answers a request for served. It reports false, and answers nothing, if
// the path does not exist.
func (d *Dispatcher) Serve(c *gin.Context, served registry.Served, info *request.Info) bool {
	resource := served.Resource.Info()
	call := &call{
		handlers: d.handlers, resource: resource.Resource, kind: resource.GVK(), store: served.Resource, tracker: resource.FieldTracker,
		jsonOnly: resource.JSONOnly, custom: resource.JSONOnly,
		converted: isConverted(resource), gin: c, ctx: c.Request.Context(), namespace: info.Namespace,
	}
	if !resource.Namespaced && info.Namespace != "" {
		return false
	}
	all, ok := call.methodsOfPath(served, resource, info)
	if !ok {
		return false
	}
	method := c.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http keeps the body back
	}
	var err error
	switch handle := all[method]; {
	case handle != nil:
		err = handle(call)
	case len(info.Parts) == 1 && info.Prefix == "" && (method == http.MethodPut || method == http.MethodPatch):
		err = apierrors.NewBadRequest("name must be provided")
	default:
		err = call.notAllowed(slices.Sorted(maps.Keys(all)))
	}
	if err != nil {
		call.fail(err)
	}
	return true
}

// methodsOfPath are the methods of info's path: a collection, an object or a
// subresource.
func (c *call) methodsOfPath(served registry.Served, resource registry.Info, info *request.Info) (methods, bool) {
	if info.Prefix != "" {
		return c.methodsOfPrefixedPath(resource, info)
	}
	switch len(info.Parts) {
	case 1:
		if resource.Namespaced && info.Namespace == "" {
			reads := c.gin.Request.Method == http.MethodGet || c.gin.Request.Method == http.MethodHead
			return methods{http.MethodGet: (*call).listOrWatch}, reads
		}
		return collectionMethods(), true
	case 2, 3:
	default:
		return nil, false
	}
	if resource.Namespaced && info.Namespace == "" {
		return nil, false
	}
	c.name = info.Parts[1]
	if len(info.Parts) == 2 {
		return objectMethods(), true
	}
	c.subresource = info.Parts[2]
	for _, sub := range served.Subresources {
		if sub.Name == c.subresource {
			c.store, c.kind, c.tracker, c.jsonOnly = sub.Object, sub.Kind, sub.Object.Info().FieldTracker, false
			return subresourceMethods(), true
		}
	}
	if c.subresource == "status" && resource.HasStatus || slices.Contains(resource.Subresources, c.subresource) {
		return subresourceMethods(), true
	}
	missing := func(c *call) error { return apierrors.NewNotFound(c.groupResource(), c.name) }
	return methods{
		http.MethodGet: missing, http.MethodPost: missing, http.MethodPut: missing, http.MethodPatch: missing,
		http.MethodDelete: missing,
	}, true
}

// methodsOfPrefixedPath are the methods of a path with a verb before the resource. Other
// methods would not be what authorization decided on.
func (c *call) methodsOfPrefixedPath(resource registry.Info, info *request.Info) (methods, bool) {
	if info.Prefix != "watch" {
		return methods{}, true
	}
	switch len(info.Parts) {
	case 1:
	case 2:
		if resource.Namespaced && info.Namespace == "" {
			return nil, false
		}
		c.name = info.Parts[1]
	default:
		return nil, false
	}
	return methods{http.MethodGet: (*call).listOrGetWatch}, true
}
