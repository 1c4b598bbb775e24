package filters

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/request"
)

// Recover turns a panic into a 500 for its one request. A handler that aborts
// on purpose (http.ErrAbortHandler) still breaks its connection, and so does a
// panic after the answer has begun: half an answer must not look whole.
func Recover(logger *zap.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(http.ErrAbortHandler)
			}
			logger.Error("panic while serving a request", zap.Any("cause", cause), zap.String("method", c.Request.Method),
				zap.String("uri", c.Request.RequestURI), zap.String("auditID", request.IDFrom(c.Request.Context())), zap.Stack("stack"))
			if c.Writer.Written() {
				panic(http.ErrAbortHandler)
			}
			fail(c, apierrors.NewInternalError(errors.New("this request caused a panic, see the server's log")))
		}()
		c.Next()
	}
}
