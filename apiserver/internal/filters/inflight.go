package filters

import (
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// retryAfterSeconds is the delay in the Retry-After header of requests that InFlight refuses.
const retryAfterSeconds = 1

// Kinds of requests, as metrics distinguish them.
const (
	readOnlyKind = "readOnly"
	mutatingKind = "mutating"
)

func newInFlight(registry prometheus.Registerer) *prometheus.GaugeVec {
	current := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "apiserver_current_inflight_requests",
		Help: "Number of currently used inflight request limit of this apiserver per request kind.",
	}, []string{"request_kind"})
	registry.MustRegister(current)
	return current
}

// tooMany is the answer to a request for which there is no room, in upstream's
// words.
func tooMany(retryAfter int) error {
	return apierrors.NewTooManyRequests("Too many requests, please try again later.", retryAfter)
}

// InFlight answers 429 when the allowed number of requests is already being
// served; zero means no limit. Requests that may change something have a pool
// of their own, so that readers can't keep writers out. Long-running requests
// are not counted, and exempt users get through.
func InFlight(readers, mutators int, registry prometheus.Registerer) gin.HandlerFunc {
	current := newInFlight(registry)
	dropped := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_dropped_requests_total",
		Help: "Number of requests answered with 429 because too many were in flight, per request kind.",
	}, []string{"request_kind"})
	registry.MustRegister(dropped)
	reading := newPool(readers, readOnlyKind, current, dropped)
	mutating := newPool(mutators, mutatingKind, current, dropped)
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		info := request.InfoFrom(ctx)
		if info.LongRunning() {
			c.Next()
			return
		}
		p := reading
		if info.Mutating() {
			p = mutating
		}
		counted := p.enter()
		if !counted && !exempt(request.UserFrom(ctx), info) {
			p.dropped.Inc()
			request.NoteTerminated(ctx)
			fail(c, tooMany(retryAfterSeconds))
			return
		}
		if counted {
			defer p.leave()
		}
		c.Next()
	}
}

// exempt lets system:masters through, who may have to repair the cluster, and
// the leases of the cluster's own programs: a crowd of other requests must not
// make nodes look dead and leaders step down.
func exempt(user *request.User, info *request.Info) bool {
	if authz.IsMaster(user) {
		return true
	}
	if user == nil || info.APIGroup != core.Leases.Group || info.ResourceName != core.Leases.Name || info.Name == "" {
		return false
	}
	return slices.Contains(user.Groups, core.GroupNodes) || strings.HasPrefix(user.Username, "system:kube-")
}

// pool limits with a channel of tokens; without one there is no limit.
type pool struct {
	tokens  chan struct{}
	current prometheus.Gauge
	dropped prometheus.Counter
}

func newPool(size int, kind string, current *prometheus.GaugeVec, dropped *prometheus.CounterVec) *pool {
	p := &pool{current: current.WithLabelValues(kind), dropped: dropped.WithLabelValues(kind)}
	if size > 0 {
		p.tokens = make(chan struct{}, size)
	}
	return p
}

func (p *pool) enter() bool {
	if p.tokens != nil {
		select {
		case p.tokens <- struct{}{}:
		default:
			return false
		}
	}
	p.current.Inc()
	return true
}

func (p *pool) leave() {
	p.current.Dec()
	if p.tokens != nil {
		<-p.tokens
	}
}
