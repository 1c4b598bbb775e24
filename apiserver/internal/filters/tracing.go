package filters

import (
	"slices"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
	"kctl/proto/tracing"
)

// Tracing makes a span of each request, from its arrival, named as upstream's. It comes
// after authentication: users who operate or monitor the cluster decide what is
// traced; of other requests, a fraction is.
func Tracing(tracer *tracing.Tracer) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		info := request.InfoFrom(ctx)
		trusted := slices.ContainsFunc(request.UserFrom(ctx).Groups, func(group string) bool {
			return group == core.GroupMasters || group == core.GroupMonitoring
		})
		ctx, span := tracer.Request(c.Request, spanName(c.Request.Method, info), request.ReceivedFrom(ctx), trusted)
		span.SetAttributes(attribute.String("audit-id", request.IDFrom(ctx)))
		span.AddEvent("authenticated")
		c.Request = c.Request.WithContext(ctx)
		defer func() { tracing.Answered(span, c.Writer.Status()) }()
		c.Next()
	}
}

// spanName is the method and the path without names of objects, so that similar
// requests have the same name.
func spanName(method string, info *request.Info) string {
	if !info.Resource {
		return method
	}
	name := method + " /" + info.APIPrefix
	if info.APIGroup != "" {
		name += "/" + info.APIGroup
	}
	name += "/" + info.APIVersion
	if info.Namespace != "" {
		name += "/namespaces/{:namespace}"
	}
	name += "/" + info.ResourceName
	if info.Name != "" {
		name += "/{:name}"
	}
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	return name
}
