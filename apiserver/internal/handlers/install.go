package handlers

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// CreateOnly is a resource that can only be created; a subresource's Create
// answers it ("bindings", for pods/binding).
type CreateOnly struct {
	core.Resource
	Subresource registry.Subresource
}

// Options are what the handlers are built from.
type Options struct {
	Resources  []registry.Served
	CreateOnly []CreateOnly
	Admission  *admission.Chain
	// Authorizer is asked whether a user who creates by an update or a patch may
	// create; nil allows everyone.
	Authorizer authz.Authorizer
	MaxBody    int64 // of a request, in bytes
	// WatchTime is the shortest time that a watch without timeoutSeconds lasts,
	// and half of the longest; defaultWatchTime if 0.
	WatchTime time.Duration
	Meter     *Meter // nil where nobody measures
	// Conversions bounds those of lists.
	Conversions registry.Conversions
	// Encodings holds what clients get that want no JSON.
	Encodings *Encodings
	Clock     clock.WithTicker
	Logger    *zap.Logger
}

// Install serves the resources at upstream's paths.
func Install(router gin.IRouter, o Options) {
	h := newHandlers(o)
	for _, served := range o.Resources {
		h.install(router, served)
	}
	for _, c := range o.CreateOnly {
		h.route(router, c.Path(pathNamespace(c.Resource), ""), methods{
			http.MethodPost: func(call *call) error { return call.createSubresource(c.Subresource) },
		}, call{resource: c.Resource})
	}
}

type handlers struct{ Options }

func newHandlers(o Options) *handlers {
	if o.Admission == nil {
		o.Admission = admission.NewChain()
	}
	if o.Encodings == nil {
		o.Encodings = NewEncodings()
	}
	return &handlers{o}
}

// methods are the handlers of one path.
type methods map[string]func(*call) error

func collectionMethods() methods {
	return methods{http.MethodGet: (*call).listOrWatch, http.MethodPost: (*call).create, http.MethodDelete: (*call).deleteCollection}
}

func objectMethods() methods {
	return methods{
		http.MethodGet: (*call).get, http.MethodPut: (*call).update, http.MethodPatch: (*call).patch, http.MethodDelete: (*call).delete,
	}
}

// subresourceMethods are the handlers of a subresource that is read and written as the object is, such as status.
func subresourceMethods() methods {
	return methods{http.MethodGet: (*call).get, http.MethodPut: (*call).update, http.MethodPatch: (*call).patch}
}

// pathNamespace is the namespace's segment of a route.
func pathNamespace(r core.Resource) string {
	if r.Namespaced {
		return ":namespace"
	}
	return ""
}

// nameParam is the name of the object's parameter in a route: gin requires the
// same name for all parameters in the same place, and /api/v1/namespaces/X is
// both an object and the beginning of other paths.
func nameParam(r core.Resource) string {
	if r.Name == "namespaces" && r.Group == "" {
		return "namespace"
	}
	return "name"
}

func (h *handlers) install(router gin.IRouter, served registry.Served) {
	info := served.Resource.Info()
	r := info.Resource
	base := call{resource: r, kind: r.GVK(), store: served.Resource, tracker: info.FieldTracker, converted: isConverted(info)}
	h.route(router, r.Path(pathNamespace(r), ""), limitToVerbs(info, collectionMethods(), "list", "deletecollection"), base)
	if r.Namespaced {
		h.route(router, r.Path("", ""), methods{http.MethodGet: (*call).listOrWatch}, base)
	}
	object := r.Path(pathNamespace(r), ":"+nameParam(r))
	h.route(router, object, limitToVerbs(info, objectMethods(), "get", "delete"), base)
	if info.Serves("watch") {
		h.installWatches(router, base)
	}
	parts := info.Subresources
	if info.HasStatus {
		parts = append([]string{"status"}, parts...)
	}
	for _, part := range parts {
		base := base
		base.subresource = part
		served := registry.Info{Verbs: registry.SubresourceVerbs(part)}
		h.route(router, object+"/"+part, limitToVerbs(served, subresourceMethods(), "get", "delete"), base)
	}
	for _, sub := range served.Subresources {
		h.installSubresource(router, object, base, sub)
	}
}

// installWatches serves the paths that contain "watch", which are deprecated
// but still used.
func (h *handlers) installWatches(router gin.IRouter, base call) {
	r := base.resource
	paths := []string{r.Path(pathNamespace(r), ""), r.Path(pathNamespace(r), ":"+nameParam(r))}
	if r.Namespaced {
		paths = append(paths, r.Path("", ""))
	}
	root := "/api/" + r.Version
	if r.Group != "" {
		root = "/apis/" + r.Group + "/" + r.Version
	}
	for _, path := range paths {
		router.GET(root+"/watch"+strings.TrimPrefix(path, root), h.serve(deprecated((*call).listOrGetWatch, base), base))
	}
}

// limitToVerbs removes the methods whose verbs the resource lacks: GET and DELETE mean
// something else for a collection than for an object.
func limitToVerbs(info registry.Info, all methods, get, remove string) methods {
	verbs := map[string]string{
		http.MethodGet: get, http.MethodDelete: remove,
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	}
	maps.DeleteFunc(all, func(method string, _ func(*call) error) bool { return !info.Serves(verbs[method]) })
	return all
}

func (h *handlers) installSubresource(router gin.IRouter, object string, base call, sub registry.Subresource) {
	base.subresource = sub.Name
	m := methods{}
	if sub.Object != nil {
		base.store, base.kind, base.tracker = sub.Object, sub.Kind, sub.Object.Info().FieldTracker
		m = subresourceMethods()
	}
	for method, connect := range sub.Connect {
		m[method] = func(c *call) error { return c.connect(connect) }
	}
	if sub.Create != nil {
		m[http.MethodPost] = func(c *call) error { return c.createSubresource(sub) }
	}
	h.route(router, object+"/"+sub.Name, m, base)
	if sub.AnyPath {
		h.route(router, object+"/"+sub.Name+"/*path", m, base)
	}
}

// allMethods get an answer on every path of a resource: 405 without a handler.
var allMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions}

func (h *handlers) route(router gin.IRouter, path string, m methods, base call) {
	allow := slices.Sorted(maps.Keys(m))
	for _, method := range allMethods {
		handle := m[method]
		if handle == nil {
			handle = func(c *call) error { return c.notAllowed(allow) }
		} else {
			handle = deprecated(handle, base)
		}
		router.Handle(method, path, h.serve(handle, base))
	}
}

// deprecatedResources are deprecated resources.
var deprecatedResources = map[core.Resource]string{
	core.Endpoints: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
	{Version: "v1", Name: "componentstatuses", Kind: "ComponentStatus"}: "v1 ComponentStatus is deprecated in v1.19+",
}

// WarnDeprecated tells the client, the audit log and the metrics that the request
// is for what users should no longer ask for.
func WarnDeprecated(ctx context.Context, warning string) {
	request.Warn(ctx, warning)
	request.NoteDeprecated(ctx)
	audit.Annotate(ctx, "k8s.io/deprecated", "true")
}

// deprecated is handle, with a warning if it is for a deprecated resource.
func deprecated(handle func(*call) error, base call) func(*call) error {
	text, old := deprecatedResources[base.resource]
	if !old {
		return handle
	}
	return func(c *call) error {
		WarnDeprecated(c.ctx, text)
		return handle(c)
	}
}

// serve returns a handler that makes a copy of base for each request.
func (h *handlers) serve(handle func(*call) error, base call) gin.HandlerFunc {
	return func(c *gin.Context) {
		call := base
		call.handlers, call.gin, call.ctx = h, c, c.Request.Context()
		call.namespace, call.name = c.Param("namespace"), c.Param(nameParam(base.resource))
		if !base.resource.Namespaced {
			call.namespace = ""
		}
		if err := handle(&call); err != nil {
			call.fail(err)
		}
	}
}
