package server

import (
	"context"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/fairness"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/flowcontrol"
	"kctl/proto/core"
)

// fairShare shares requests out by the stored flow schemas and levels.
type fairShare struct {
	controller *fairness.Controller
	schemas    *facts.Mirror[*flowcontrolv1.FlowSchema]
	levels     *facts.Mirror[*flowcontrolv1.PriorityLevelConfiguration]
	stored     <-chan struct{} // closed when what every cluster has is stored
	changed    chan struct{}
}

// shareFairly makes it, where the flags ask for it.
func (s *Server) shareFairly() {
	s.besides = append(s.besides, s.maintainFlowControl)
	if !s.options.EnablePriorityAndFairness {
		return
	}
	f := &fairShare{
		schemas: facts.NewMirror(s.resources.FlowSchemas, func(obj core.Object) *flowcontrolv1.FlowSchema {
			return obj.(*flowcontrolv1.FlowSchema)
		}, facts.Options[*flowcontrolv1.FlowSchema]{}, s.clock, s.logger),
		levels: facts.NewMirror(s.resources.PriorityLevels, func(obj core.Object) *flowcontrolv1.PriorityLevelConfiguration {
			return obj.(*flowcontrolv1.PriorityLevelConfiguration)
		}, facts.Options[*flowcontrolv1.PriorityLevelConfiguration]{}, s.clock, s.logger),
		stored: s.bootstrapped, changed: make(chan struct{}, 1),
	}
	f.schemas.OnChange(func(facts.Key, **flowcontrolv1.FlowSchema, **flowcontrolv1.FlowSchema) { f.tell() })
	f.levels.OnChange(func(facts.Key, **flowcontrolv1.PriorityLevelConfiguration, **flowcontrolv1.PriorityLevelConfiguration) {
		f.tell()
	})
	f.controller = fairness.New(fairness.Options{
		Seats:   s.options.Seats(),
		Builtin: fairness.Configuration{Schemas: flowcontrol.BuiltinSchemas(), Levels: flowcontrol.BuiltinLevels()},
		Read: func() fairness.Configuration {
			return fairness.Configuration{Schemas: f.schemas.List(), Levels: f.levels.List()}
		},
		Changed: f.changed, Dangling: s.noteDangling,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	})
	s.fairness = f
}

// tell has the controller read again. What comes before everything has been
// read once is told by Run.
func (f *fairShare) tell() {
	select {
	case <-f.schemas.Synced():
	default:
		return
	}
	select {
	case <-f.levels.Synced():
	default:
		return
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *fairShare) loops() []housekeeping.Loop {
	if f == nil {
		return nil
	}
	return []housekeeping.Loop{f.run}
}

// run follows the objects once there are those that every cluster has.
func (f *fairShare) run(ctx context.Context) error {
	if !wait(ctx, f.stored) {
		return ctx.Err()
	}
	return together(ctx, []housekeeping.Loop{f.schemas.Run, f.levels.Run, f.controller.Run, func(ctx context.Context) error {
		if wait(ctx, f.schemas.Synced()) && wait(ctx, f.levels.Synced()) {
			f.tell()
		}
		return nil
	}})
}

// wait waits until the stored objects are in force.
func (f *fairShare) wait(ctx context.Context) bool {
	return f == nil || wait(ctx, f.controller.Applied())
}

// limit is the filter that bounds how many requests are served at once.
func (s *Server) limit() gin.HandlerFunc {
	o := s.options
	if s.fairness == nil {
		return filters.InFlight(o.MaxRequestsInFlight, o.MaxMutatingRequestsInFlight, s.metrics)
	}
	return filters.Fairness(filters.FairnessOptions{
		Controller: s.fairness.controller, Count: s.counter(), Timeout: o.RequestTimeout, Registry: s.metrics,
	})
}

// counter counts the objects that a list is of. Those of custom resources are
// not counted: they may not have been read yet.
func (s *Server) counter() func(info *request.Info, most int) int {
	type counted interface {
		Count(namespace string, most int) int
	}
	stores := map[[2]string]counted{}
	for _, served := range s.served {
		if store, ok := served.Resource.(counted); ok {
			info := served.Resource.Info()
			stores[[2]string{info.Group, info.Name}] = store
		}
	}
	return func(info *request.Info, most int) int {
		store, ok := stores[[2]string{info.APIGroup, info.ResourceName}]
		if !ok {
			return 0
		}
		return store.Count(info.Namespace, most)
	}
}

// danglingManager is who says whether a flow schema's level is missing; upstream's
// name.
const danglingManager = "api-priority-and-fairness-config-consumer-v1"

// noteDangling writes into a flow schema whether its level is missing.
func (s *Server) noteDangling(ctx context.Context, schema *flowcontrolv1.FlowSchema, missing bool) error {
	condition, news := flowcontrol.Dangling(schema, missing, metav1.NewTime(s.clock.Now()))
	if !news {
		return nil
	}
	applied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return fmt.Errorf("condition of flow schema %s: %w", schema.Name, err)
	}
	return s.resources.FlowSchemas.ApplyTyped(ctx, schema.Name, danglingManager, map[string]any{"conditions": []any{applied}})
}

// maintainEvery is how often what users did to the objects that every cluster
// has is looked at.
const maintainEvery = time.Minute

// maintainFlowControl keeps those objects what they are.
func (s *Server) maintainFlowControl(ctx context.Context) error {
	ticker := s.clock.NewTicker(maintainEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
			if err := flowcontrol.Bootstrap(ctx, s.resources.FlowSchemas, s.resources.PriorityLevels); err != nil && ctx.Err() == nil {
				s.logger.Warn("flow schemas and priority levels are not all as they should be, trying again", zap.Error(err))
			}
		}
	}
}

// installFairnessPages serves what there is to see of who waits for whom.
func (s *Server) installFairnessPages(router gin.IRoutes) {
	if s.fairness == nil {
		return
	}
	for name, dump := range fairness.Pages {
		router.Match(reading, "/debug/api_priority_and_fairness/"+name, func(c *gin.Context) {
			c.Header("Content-Type", "text/plain; charset=utf-8")
			if err := dump(s.fairness.controller, c.Writer, c.Query("includeRequestDetails") != ""); err != nil {
				s.logger.Debug("the client has gone", zap.Error(err))
			}
		})
	}
}
