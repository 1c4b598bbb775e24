package server

import (
	"github.com/gin-gonic/gin"
	"k8s.io/utils/clock"

	"kctl/proto/tracing"
)

// withTracing makes a span of each request. The client can't decide what is recorded,
// because it is not authenticated yet.
func withTracing(tracer *tracing.Tracer, clock clock.PassiveClock) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, span := tracer.Request(c.Request, c.Request.Method+" "+c.FullPath(), clock.Now(), false)
		c.Request = c.Request.WithContext(ctx)
		defer func() { tracing.Answered(span, c.Writer.Status()) }()
		c.Next()
	}
}
