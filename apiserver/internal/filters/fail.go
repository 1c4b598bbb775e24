package filters

import (
	"github.com/gin-gonic/gin"

	"kctl/apiserver/internal/failure"
)

// fail ends the chain with err as a Status.
func fail(c *gin.Context, err error) {
	failure.Write(c.Writer, c.Request, err)
	c.Abort()
}
