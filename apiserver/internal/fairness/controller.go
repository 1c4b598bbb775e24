package fairness

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/clock"
)

// Configuration are the stored flow schemas and priority levels.
type Configuration struct {
	Schemas []*flowcontrolv1.FlowSchema
	Levels  []*flowcontrolv1.PriorityLevelConfiguration
}

// Options are what a Controller is built from.
type Options struct {
	// Seats are how many requests run at once, all levels together.
	Seats int
	// Builtin is what every cluster has. It is used until the stored objects have
	// been read; its levels exempt and catch-all also whenever they are missing.
	Builtin Configuration
	// Read returns the present stored objects, which are not modified.
	Read func() Configuration
	// Changed signals that what Read returns has changed.
	Changed <-chan struct{}
	// Dangling is called at every change, for each schema, with whether its level
	// is missing.
	Dangling func(ctx context.Context, schema *flowcontrolv1.FlowSchema, missing bool) error
	Metrics  prometheus.Registerer
	Clock    clock.WithTicker
	Logger   *zap.Logger
}

// Controller holds the levels and keeps them in step with the stored objects.
type Controller struct {
	options Options
	metrics *metrics
	table   atomic.Pointer[table]
	levels  map[string]*level // used by Run only, once it runs
	applied chan struct{}
}

// New returns a Controller that uses the built-in configuration until Run.
func New(o Options) *Controller {
	c := &Controller{options: o, metrics: newMetrics(o.Metrics), levels: map[string]*level{}, applied: make(chan struct{})}
	c.apply(o.Builtin)
	return c
}

// Applied is closed when the stored configuration is in force.
func (c *Controller) Applied() <-chan struct{} { return c.applied }

// adjustEvery is how often seats are lent among levels; upstream's.
const adjustEvery = 10 * time.Second

// Run follows the configuration until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ticker := c.options.Clock.NewTicker(adjustEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
			c.adjust()
		case <-c.options.Changed:
			stored := c.options.Read()
			c.apply(stored)
			c.tell(ctx, stored)
			select {
			case <-c.applied:
			default:
				close(c.applied)
			}
		}
	}
}

// apply puts a configuration in force. Levels that stay keep their queues.
func (c *Controller) apply(stored Configuration) {
	stored = c.complete(stored)
	levels := make(map[string]*level, len(stored.Levels))
	ids := make(map[string]string, len(stored.Levels))
	shares := shareOut(c.options.Seats, stored.Levels)
	for _, from := range stored.Levels {
		to := c.levels[from.Name]
		if to == nil {
			to = &level{name: from.Name, clock: c.options.Clock, present: map[*Ticket]bool{}, ratios: c.metrics.ratios.of(from.Name)}
		}
		to.configure(from, shares[from.Name])
		levels[from.Name], ids[from.Name] = to, string(from.UID)
	}
	gone := c.levels
	c.levels = levels
	c.lendOut()
	made := &table{levels: slices.SortedFunc(maps.Values(levels), func(a, b *level) int { return strings.Compare(a.name, b.name) })}
	inOrder(stored.Schemas)
	for _, from := range stored.Schemas {
		name := from.Spec.PriorityLevelConfiguration.Name
		to := levels[name]
		if to == nil {
			continue // it dangles
		}
		s := tie(from, to, ids[name])
		s.most = mostSeats(to.share, to.hand)
		s.metrics = c.metrics
		made.schemas = append(made.schemas, s)
		if s.name == flowcontrolv1.FlowSchemaNameCatchAll {
			made.last = s
		}
	}
	before := c.table.Swap(made)
	c.forget(before, made, gone)
}

// complete adds the mandatory objects that every cluster has.
func (c *Controller) complete(stored Configuration) Configuration {
	out := Configuration{Schemas: slices.Clone(stored.Schemas), Levels: slices.Clone(stored.Levels)}
	for _, l := range c.options.Builtin.Levels {
		if mandatory(l.Name) && !hasName(out.Levels, l.Name) {
			out.Levels = append(out.Levels, l)
		}
	}
	for _, s := range c.options.Builtin.Schemas {
		if mandatory(s.Name) && !hasName(out.Schemas, s.Name) {
			out.Schemas = append(out.Schemas, s)
		}
	}
	return out
}

func mandatory(name string) bool {
	return name == flowcontrolv1.PriorityLevelConfigurationNameExempt || name == flowcontrolv1.PriorityLevelConfigurationNameCatchAll
}

func hasName[T interface{ GetName() string }](objects []T, name string) bool {
	return slices.ContainsFunc(objects, func(o T) bool { return o.GetName() == name })
}

// forget drops the metrics of what is no longer configured.
func (c *Controller) forget(before, now *table, levels map[string]*level) {
	for name := range levels {
		if c.levels[name] == nil {
			c.metrics.forgetLevel(name)
		}
	}
	if before == nil {
		return
	}
	kept := map[[2]string]bool{}
	for _, s := range now.schemas {
		kept[[2]string{s.name, s.level.name}] = true
	}
	for _, s := range before.schemas {
		if !kept[[2]string{s.name, s.level.name}] {
			c.metrics.forget(s.name, s.level.name)
		}
	}
}

// tell reports, for each schema, whether its level exists.
func (c *Controller) tell(ctx context.Context, stored Configuration) {
	for _, s := range stored.Schemas {
		if err := c.options.Dangling(ctx, s, c.levels[s.Spec.PriorityLevelConfiguration.Name] == nil); err != nil && ctx.Err() == nil {
			c.options.Logger.Warn("the condition of a flow schema was not written", zap.String("schema", s.Name), zap.Error(err))
		}
	}
}

// adjust lends seats according to each level's recent demand.
func (c *Controller) adjust() {
	for name, l := range c.levels {
		s := l.summarize()
		l.high, l.smoothed = int(s.high), s.smooth(l.smoothed)
		for gauge, value := range map[string]float64{
			"high_watermark": s.high, "average": s.average, "stdev": s.deviation, "smoothed": l.smoothed,
		} {
			c.metrics.ofLevels["demand_seats_"+gauge].WithLabelValues(name).Set(value)
		}
	}
	c.lendOut()
}

// lendOut gives each level its current seats. Seats that exempt requests have
// used are not available to others.
func (c *Controller) lendOut() {
	left := 0
	var limited []*level
	var claims []claim
	for _, l := range c.levels {
		left += l.share.nominal
		asked := claimOf(l.share, l.high, l.smoothed)
		if l.exempt {
			most := max(l.share.lower, l.high)
			left -= most
			asked.target = float64(most)
			c.setLimit(l, most)
		} else {
			limited = append(limited, l)
			claims = append(claims, asked)
		}
		c.metrics.ofLevels["target_seats"].WithLabelValues(l.name).Set(asked.target)
	}
	seats, factor := lend(left, claims)
	for i, n := range seats {
		c.setLimit(limited[i], n)
	}
	c.metrics.fairFraction.Set(factor)
}

func (c *Controller) setLimit(l *level, seats int) {
	l.limit(seats, max(1, int(math.Round(float64(c.options.Seats)/10))))
	for gauge, value := range map[string]int{"nominal": l.share.nominal, "lower": l.share.lower, "upper": l.share.upper, "current": seats} {
		c.metrics.ofLevels[gauge+"_limit_seats"].WithLabelValues(l.name).Set(float64(value))
	}
}
