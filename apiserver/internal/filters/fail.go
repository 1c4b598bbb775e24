package filters

import (
	"github.com/gin-gonic/gin"

	"kctl/apiserver/internal/status"
)

// fail ends the chain with err as a Status.
func fail(c *gin.Context, err error) {
	status.Write(c.Writer, c.Request, err)
	c.Abort()
}
