package server

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/filters"
)

// maxFlagValue bounds what is read of a flag's new value.
const maxFlagValue = 64

// installVerbosity lets whoever may write /debug/flags/v change how much is
// logged while the server runs, as upstream's /debug/flags/v does.
func (s *Server) installVerbosity(router gin.IRoutes) {
	router.GET("/debug/flags", func(c *gin.Context) { c.String(http.StatusOK, "handlers:\nv\n") })
	router.PUT("/debug/flags/v", func(c *gin.Context) {
		text, err := io.ReadAll(io.LimitReader(c.Request.Body, maxFlagValue))
		verbosity, parseErr := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || parseErr != nil || verbosity < 0 {
			filters.WriteStatus(c.Writer, apierrors.NewBadRequest("the body must be a number: the log verbosity"))
			return
		}
		s.options.Log.SetVerbosity(verbosity)
		s.logger.Info("log verbosity changed", zap.Int("v", verbosity))
		c.String(http.StatusOK, fmt.Sprintf("successfully set klog.logging.verbosity to %d", verbosity))
	})
}
