package server

import (
	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/fairness"
	"kctl/apiserver/internal/fairness/configcontroller"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/request"
)

// newShare makes API priority and fairness, if the flags ask for it; otherwise nil.
func (s *Server) newShare() *configcontroller.Controller {
	if !s.options.EnablePriorityAndFairness {
		return nil
	}
	return configcontroller.New(s.shareOptions())
}

// shareOptions are also the options for maintaining its stored objects.
func (s *Server) shareOptions() configcontroller.Options {
	return configcontroller.Options{
		Schemas: s.resources.FlowSchemas, Levels: s.resources.PriorityLevels, Seats: s.options.Seats(), Bootstrapped: s.bootstrapped,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	}
}

// limit is the filter that bounds how many requests are served at once.
func (s *Server) limit() gin.HandlerFunc {
	o := s.options
	if s.fairness == nil {
		return filters.InFlight(o.MaxRequestsInFlight, o.MaxMutatingRequestsInFlight, s.metrics)
	}
	return filters.Fairness(filters.FairnessOptions{
		Controller: s.fairness.Fairness, Measure: s.measure(), Timeout: o.RequestTimeout, Registry: s.metrics,
	})
}

// measure finds the size of a list, by which its cost is estimated.
func (s *Server) measure() func(info *request.Info, mostObjects, mostBytes int) (objects, bytes int) {
	type measured interface {
		Measure(namespace string, mostObjects, mostBytes int) (objects, bytes int)
	}
	stores := map[[2]string]measured{}
	for _, served := range s.served {
		if store, ok := served.Resource.(measured); ok {
			info := served.Resource.Info()
			stores[[2]string{info.Group, info.Name}] = store
		}
	}
	return func(info *request.Info, mostObjects, mostBytes int) (objects, bytes int) {
		store, ok := stores[[2]string{info.APIGroup, info.ResourceName}]
		if !ok {
			return s.definitions.Measure(
				schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.ResourceName}, info.Namespace, mostObjects, mostBytes)
		}
		return store.Measure(info.Namespace, mostObjects, mostBytes)
	}
}

// installFairnessPages serves the debug pages that show which requests wait for which.
func (s *Server) installFairnessPages(router gin.IRoutes) {
	if s.fairness == nil {
		return
	}
	for name, dump := range fairness.Pages {
		router.Match(reading, "/debug/api_priority_and_fairness/"+name, func(c *gin.Context) {
			c.Header("Content-Type", "text/plain; charset=utf-8")
			if err := dump(s.fairness.Fairness, c.Writer, c.Query("includeRequestDetails") != ""); err != nil {
				s.logger.Debug("the client has gone", zap.Error(err))
			}
		})
	}
}
