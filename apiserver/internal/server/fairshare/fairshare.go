package fairshare

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

// Options are what a Share is built from.
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

// Share schedules requests by the stored flow schemas and priority levels.
type Share struct {
	// Controller decides which requests wait.
	Controller *fairness.Controller

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

// New returns a Share, which uses the built-in objects until Run has read the
// stored ones.
func New(o Options) *Share {
	f := &Share{
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
	f.schemas.OnChange(func(informer.Key, **flowcontrolv1.FlowSchema, **flowcontrolv1.FlowSchema) { f.tell() })
	f.levels.OnChange(func(informer.Key, **flowcontrolv1.PriorityLevelConfiguration, **flowcontrolv1.PriorityLevelConfiguration) {
		f.tell()
	})
	f.Controller = fairness.New(fairness.Options{
		Seats:   o.Seats,
		Builtin: fairness.Configuration{Schemas: flowcontrol.BuiltinSchemas(), Levels: flowcontrol.BuiltinLevels()},
		Read: func() fairness.Configuration {
			return fairness.Configuration{Schemas: f.schemas.List(), Levels: f.levels.List()}
		},
		Changed: f.changed, Dangling: f.noteDangling,
		Metrics: o.Metrics, Clock: o.Clock, Logger: o.Logger,
	})
	return f
}

// tell makes the controller read again. Until everything has been read once,
// Run does that.
func (f *Share) tell() {
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

// Run follows the objects until ctx ends, once those that every cluster has
// exist.
func (f *Share) Run(ctx context.Context) error {
	if !closed(ctx, f.o.Bootstrapped) {
		return ctx.Err()
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []func(context.Context) error{f.schemas.Run, f.levels.Run, f.Controller.Run, f.noteLate} {
		group.Go(func() error { return loop(ctx) })
	}
	if closed(ctx, f.schemas.Synced()) && closed(ctx, f.levels.Synced()) {
		f.tell()
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
func (f *Share) Applied() <-chan struct{} { return f.Controller.Applied() }

// danglingManager is the field manager that records whether a flow schema's level
// is missing; upstream's name.
const danglingManager = "api-priority-and-fairness-config-consumer-v1"

// noteDangling writes into a flow schema whether its level is missing.
func (f *Share) noteDangling(ctx context.Context, schema *flowcontrolv1.FlowSchema, missing bool) error {
	condition, news := flowcontrol.DanglingCondition(schema, missing, metav1.NewTime(f.o.Clock.Now()))
	if !news || !f.mayNote(schema.Name) {
		return nil
	}
	applied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return fmt.Errorf("condition of flow schema %s: %w", schema.Name, err)
	}
	return registry.Apply(ctx, f.o.Schemas, registry.Target{Name: schema.Name, Subresource: "status"}, danglingManager, map[string]any{"status": map[string]any{"conditions": []any{applied}}})
}

// notesPerMinute is how often a schema's condition is written: another server may see other
// levels, and write the opposite each time.
const notesPerMinute = 6

// mayNote reports whether a schema's condition may be written now. If not, noteLate comes
// back to it.
func (f *Share) mayNote(schema string) bool {
	now := f.o.Clock.Now()
	maps.DeleteFunc(f.noted, func(_ string, at []time.Time) bool { return now.Sub(at[len(at)-1]) >= time.Minute })
	recent := slices.DeleteFunc(f.noted[schema], func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if len(recent) >= notesPerMinute {
		f.late.Store(true)
		return false
	}
	f.noted[schema] = append(recent, now)
	return true
}

// noteLate has conditions looked at again that came too often.
func (f *Share) noteLate(ctx context.Context) error {
	ticker := f.o.Clock.NewTicker(time.Minute / notesPerMinute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
			if f.late.Swap(false) {
				f.tell()
			}
		}
	}
}
