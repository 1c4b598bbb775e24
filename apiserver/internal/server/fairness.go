package server

import (
	"github.com/gin-gonic/gin"
	"go.uber.org/zap"

	"kctl/apiserver/internal/fairness"
	"kctl/apiserver/internal/filters"
)

// limit is the filter that bounds how many requests are served at once.
func (s *surface) limit() gin.HandlerFunc {
	o := s.options
	if s.policy.fairness == nil {
		return filters.InFlight(o.MaxRequestsInFlight, o.MaxMutatingRequestsInFlight, s.metrics)
	}
	return filters.Fairness(filters.FairnessOptions{
		Controller: s.policy.fairness.Fairness, Measure: s.api.measure(), Timeout: o.RequestTimeout, Registry: s.metrics,
	})
}

// installFairnessPages serves the debug pages that show which requests wait for which.
func (s *surface) installFairnessPages(router gin.IRoutes) {
	if s.policy.fairness == nil {
		return
	}
	for name, dump := range fairness.Pages {
		router.Match(reading, "/debug/api_priority_and_fairness/"+name, func(c *gin.Context) {
			c.Header("Content-Type", "text/plain; charset=utf-8")
			if err := dump(s.policy.fairness.Fairness, c.Writer, c.Query("includeRequestDetails") != ""); err != nil {
				s.logger.Debug("the client has gone", zap.Error(err))
			}
		})
	}
}
