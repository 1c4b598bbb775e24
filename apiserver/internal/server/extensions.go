package server

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/gin-gonic/gin"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/discovery"
	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/openapi"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/status"
	"kctl/apiserver/internal/storage/cache"
)

// This file connects what comes and goes while the server runs: requests that
// match no route are for other servers, for custom resources, or for nothing.

// extensions answers requests that match no route.
func (s *surface) extensions(catalog *discovery.Catalog) gin.HandlerFunc {
	dispatcher := handlers.NewDispatcher(s.handling())
	return func(c *gin.Context) {
		if s.objects.aggregator.Serve(c.Writer, c.Request) {
			return
		}
		if strings.HasPrefix(c.Request.URL.Path, "//") { // no path of an API, whatever follows
			s.notFound(c)
			return
		}
		info := request.InfoFrom(c.Request.Context())
		if info.Resource && info.APIPrefix == "apis" && s.serveCustom(c, dispatcher, info) {
			return
		}
		if catalog.Serve(c, c.Request.URL.Path) { // whatever the method, as upstream
			return
		}
		s.notFound(c)
	}
}

// serveCustom answers a request for a custom resource. It reports false if
// there is none of that name.
func (s *surface) serveCustom(c *gin.Context, dispatcher *handlers.Dispatcher, info *request.Info) bool {
	served, warning, ok, err := s.objects.definitions.Lookup(c.Request.Context(),
		schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.ResourceName})
	if !ok {
		return false
	}
	if err != nil {
		status.Write(c.Writer, c.Request, unavailable(err))
		return true
	}
	if warning != "" {
		handlers.WarnDeprecated(c.Request.Context(), warning)
	}
	return dispatcher.Serve(c, served, info)
}

// unavailable is the answer for a custom resource that should be served and can't be.
func unavailable(err error) *apierrors.StatusError {
	if errors.Is(err, cache.ErrNotReady) || errors.Is(err, cache.ErrHeldBack) {
		return apierrors.NewServiceUnavailable("definitions of custom resources have not been read yet")
	}
	return apierrors.NewInternalError(err)
}

// more tells discovery and OpenAPI what there is besides the built-in resources.
func (o *objects) more() *more { return &more{o} }

type more struct{ *objects }

func (m *more) Changed() any {
	return [2]int64{m.definitions.Changed(), m.aggregator.DiscoveryChanged()}
}

// More implements discovery.Source.
func (m *more) More() discovery.More {
	out := discovery.More{Remote: m.aggregator.Remotes(), Priorities: m.aggregator.Priorities()}
	for _, info := range m.definitions.Infos() {
		out.Resources = append(out.Resources, describeCustom(info))
	}
	return out
}

// described adapts more to OpenAPI.
type described struct{ *more }

// Changed implements openapi.Source.
func (d described) Changed() any {
	return [2]int64{d.definitions.Changed(), d.aggregator.DescriptionsChanged()}
}

// Remotes implements openapi.Source.
func (d described) Remotes() []openapi.Remote { return d.aggregator.Descriptions() }

// Customs implements openapi.Source.
func (d described) Customs() []openapi.Custom {
	var out []openapi.Custom
	for _, info := range d.definitions.Infos() {
		out = append(out, openapi.Custom{
			Info: info.Info, ListKind: info.ListKind, HasScale: info.HasScale, Mark: hex.EncodeToString(info.Hash[:]),
			Selectable: info.Selectable, Schema: info.Schema,
		})
	}
	return out
}

// describeCustom is a custom resource's entry in discovery.
func describeCustom(info customresources.Info) discovery.Resource {
	d := discovery.Resource{Info: info.Info, Verbs: customVerbs}
	if info.Terminating {
		d.Verbs = endingVerbs
	}
	if info.HasStatus {
		d.Subresources = append(d.Subresources, discovery.Subresource{Name: "status", Verbs: discovery.StatusVerbs})
	}
	if info.HasScale {
		d.Subresources = append(d.Subresources, discovery.Subresource{
			Name: "scale", Kind: autoscalingv1.SchemeGroupVersion.WithKind("Scale"), Verbs: discovery.StatusVerbs,
		})
	}
	return d
}

// customVerbs are in upstream's order, by which clients compare.
var customVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// endingVerbs are left of customVerbs while a definition is being deleted.
var endingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"}
