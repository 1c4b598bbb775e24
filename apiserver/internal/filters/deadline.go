package filters

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/request"
)

// Deadline ends requests that take longer than limit, or than a shorter timeout
// that the client asked for. Long-running ones end with draining, so that their
// clients go to another server.
func Deadline(limit time.Duration, draining context.Context) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		if request.InfoFrom(ctx).LongRunning() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			stop := context.AfterFunc(draining, cancel)
			defer stop()
			c.Request = c.Request.WithContext(ctx)
			c.Next()
			return
		}
		timeout, err := timeoutOf(c, limit)
		if err != nil {
			fail(c, err)
			return
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
		if !c.Writer.Written() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			request.NoteTerminated(ctx)
			fail(c, apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0))
		}
	}
}

func timeoutOf(c *gin.Context, limit time.Duration) (time.Duration, error) {
	text := c.Query("timeout")
	if text == "" {
		return limit, nil
	}
	asked, err := time.ParseDuration(text)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	if asked <= 0 || asked > limit {
		return limit, nil
	}
	return asked, nil
}
