package configcontroller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/fairness"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/flowcontrol"
	"kctl/proto/core"
)

// Options are what a Controller is built from.
type Options struct {
	Schemas *registry.Store[*flowcontrolv1.FlowSchema]
	Levels  *registry.Store[*flowcontrolv1.PriorityLevelConfiguration]
	// Seats is how many requests are served at once, all levels together.
	Seats int
	// Bootstrapped is closed when the objects that every cluster has are stored.
	Bootstrapped <-chan struct{}
	Metrics      *prometheus.Registry
	Clock        clock.WithTicker
	Logger       *zap.Logger
}

// Controller schedules requests by the stored flow schemas and priority levels.
type Controller struct {
	// Fairness decides which requests wait.
	Fairness *fairness.Controller

	o       Options
	schemas *informer.Informer[*flowcontrolv1.FlowSchema]
	levels  *informer.Informer[*flowcontrolv1.PriorityLevelConfiguration]
	changed chan struct{}

	// noted are the times at which conditions of schemas were written, in the last minute, by
	// the schema's name; only the controller's goroutine uses them. late: some were not, as
	// there had been too many.
	noted map[string][]time.Time
	late  atomic.Bool
}

// New returns a Controller, which uses the built-in objects until Run has read the
// stored ones.
func New(o Options) *Controller {
	c := &Controller{
		o: o,
		schemas: informer.New(o.Schemas, func(obj core.Object) *flowcontrolv1.FlowSchema {
			return obj.(*flowcontrolv1.FlowSchema)
		}, informer.Options[*flowcontrolv1.FlowSchema]{}, o.Clock, o.Logger),
		levels: informer.New(o.Levels, func(obj core.Object) *flowcontrolv1.PriorityLevelConfiguration {
			return obj.(*flowcontrolv1.PriorityLevelConfiguration)
		}, informer.Options[*flowcontrolv1.PriorityLevelConfiguration]{}, o.Clock, o.Logger),
		changed: make(chan struct{}, 1),
		noted:   map[string][]time.Time{},
	}
	c.schemas.OnChange(func(informer.Key, **flowcontrolv1.FlowSchema, **flowcontrolv1.FlowSchema) { c.tell() })
	c.levels.OnChange(func(informer.Key, **flowcontrolv1.PriorityLevelConfiguration, **flowcontrolv1.PriorityLevelConfiguration) {
		c.tell()
	})
	c.Fairness = fairness.New(fairness.Options{
		Seats:   o.Seats,
		Builtin: fairness.Configuration{Schemas: flowcontrol.BuiltinSchemas(), Levels: flowcontrol.BuiltinLevels()},
		Read: func() fairness.Configuration {
			return fairness.Configuration{Schemas: c.schemas.List(), Levels: c.levels.List()}
		},
		Changed: c.changed, Dangling: c.noteDangling,
		Metrics: o.Metrics, Clock: o.Clock, Logger: o.Logger,
	})
	return c
}

// tell makes the controller read again. Until everything has been read once,
// Run does that.
func (c *Controller) tell() {
	select {
	case <-c.schemas.Synced():
	default:
		return
	}
	select {
	case <-c.levels.Synced():
	default:
		return
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Run follows the objects until ctx ends, once those that every cluster has
// exist.
func (c *Controller) Run(ctx context.Context) error {
	if !closed(ctx, c.o.Bootstrapped) {
		return ctx.Err()
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(context.Context) error{c.schemas.Run, c.levels.Run, c.Fairness.Run, c.noteLate} {
		group.Go(func() error { return loop(ctx) })
	}
	if closed(ctx, c.schemas.Synced()) && closed(ctx, c.levels.Synced()) {
		c.tell()
	}
	return group.Wait()
}

// closed waits until done is closed; it reports false if ctx ends first.
func closed(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-done:
		return true
	}
}

// Applied is closed when the stored objects are in force.
func (c *Controller) Applied() <-chan struct{} { return c.Fairness.Applied() }

// danglingManager is the field manager that records whether a flow schema's level
// is missing; upstream's name.
const danglingManager = "api-priority-and-fairness-config-consumer-v1"

// noteDangling writes into a flow schema whether its level is missing.
func (c *Controller) noteDangling(ctx context.Context, schema *flowcontrolv1.FlowSchema, missing bool) error {
	condition, news := flowcontrol.DanglingCondition(schema, missing, metav1.NewTime(c.o.Clock.Now()))
	if !news || !c.mayNote(schema.Name) {
		return nil
	}
	applied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return fmt.Errorf("condition of flow schema %s: %w", schema.Name, err)
	}
	return registry.Apply(ctx, c.o.Schemas, registry.Target{Name: schema.Name, Subresource: "status"}, danglingManager,
		map[string]any{"status": map[string]any{"conditions": []any{applied}}})
}

// notesPerMinute is how often a schema's condition is written: another server may see other
// levels, and write the opposite each time.
const notesPerMinute = 6

// mayNote reports whether a schema's condition may be written now. If not, noteLate comes
// back to it.
func (c *Controller) mayNote(schema string) bool {
	now := c.o.Clock.Now()
	maps.DeleteFunc(c.noted, func(_ string, at []time.Time) bool { return now.Sub(at[len(at)-1]) >= time.Minute })
	recent := slices.DeleteFunc(c.noted[schema], func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if len(recent) >= notesPerMinute {
		c.late.Store(true)
		return false
	}
	c.noted[schema] = append(recent, now)
	return true
}

// noteLate has conditions looked at again that came too often.
func (c *Controller) noteLate(ctx context.Context) error {
	ticker := c.o.Clock.NewTicker(time.Minute / notesPerMinute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
			if c.late.Swap(false) {
				c.tell()
			}
		}
	}
}
