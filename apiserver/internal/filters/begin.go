package filters

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/proto/relay"
)

const (
	auditIDHeader = "Audit-Id"
	maxAuditID    = 64
)

// Begin parses the request's path and prepares the context for later links. A
// client's own audit id is kept, so that a request can be followed through a
// proxy.
func Begin(clock clock.PassiveClock) gin.HandlerFunc {
	return func(c *gin.Context) {
		id := c.GetHeader(auditIDHeader)
		if id == "" || len(id) > maxAuditID {
			id = uuid.NewString()
		}
		c.Header(auditIDHeader, id)
		// Answers are private and may be outdated at once; the few documents that may
		// be cached say so.
		c.Header("Cache-Control", "no-cache, private")
		a := &request.Arrival{ID: id, At: clock.Now(), Info: request.Parse(c.Request), Stamps: &relay.Stamps{}, Warnings: &request.Warnings{}}
		a.Stamps.Stamp(relay.ServerReceived, a.At)
		c.Request = c.Request.WithContext(request.With(c.Request.Context(), a))
		c.Next()
	}
}
