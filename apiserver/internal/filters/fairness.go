package filters

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/fairness"
	"kctl/apiserver/internal/request"
	"kctl/proto/tracing"
)

// Headers name the objects by which a request was classified, by their uids,
// which reveal nothing to users who may not see the objects.
const (
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// FairnessOptions are what Fairness needs.
type FairnessOptions struct {
	Controller *fairness.Controller
	// Measure returns how many objects a list has, and their bytes, reading no
	// further than to the object at which either reaches its bound.
	Measure  func(info *request.Info, mostObjects, mostBytes int) (objects, bytes int)
	Timeout  time.Duration // of requests
	Registry prometheus.Registerer
}

// Fairness lets requests through when their priority levels have seats for
// them, possibly after waiting, and answers 429 if there are none. Watches keep
// their seats until they have sent the initial events; streams need none.
func Fairness(o FairnessOptions) gin.HandlerFunc {
	inFlight := newInFlight(o.Registry)
	reading, mutating := inFlight.WithLabelValues(readOnlyKind), inFlight.WithLabelValues(mutatingKind)
	wait := o.Timeout / 4
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		info := request.InfoFrom(ctx)
		watch := info.Verb == "watch"
		if info.LongRunning() && !watch {
			c.Next()
			return
		}
		ticket := o.Controller.Find(request.UserFrom(ctx), info)
		mark(c.Writer.Header(), &ticket)
		_, waiting := tracing.Step(ctx, "priorityandfairness")
		entered := ticket.Enter(ctx, o.seats(c, info), patience(ctx, wait))
		waiting.End()
		if !entered {
			request.NoteTerminated(ctx)
			fail(c, tooMany(ticket.RetryAfter()))
			return
		}
		if watch {
			leave := sync.OnceFunc(ticket.Leave)
			defer leave()
			c.Request = c.Request.WithContext(request.WithBegun(ctx, leave))
			c.Next()
			return
		}
		defer ticket.Leave()
		kind := reading
		if info.Mutating() {
			kind = mutating
		}
		kind.Inc()
		defer kind.Dec()
		c.Next()
	}
}

// mark sets the headers. Their values are shared and must not be appended to.
func mark(h http.Header, t *fairness.Ticket) {
	h[schemaHeader], h[levelHeader] = t.SchemaID(), t.LevelID()
}

// patience is how long a request waits at most: a quarter of its time, as with
// upstream, and of the time that requests may take.
func patience(ctx context.Context, wait time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(wait, time.Until(deadline)/4)
	}
	return wait
}

// seats is what a request costs; for lists it depends on the number of objects and
// on their size, as for watches that begin with what is there (KEP-3157).
func (o *FairnessOptions) seats(c *gin.Context, info *request.Info) int {
	lists := info.Verb == "list" || info.Verb == "watch" && beginsWithAll(c.Request.URL.Query())
	if !lists || info.Name != "" {
		return 1
	}
	most := math.MaxInt
	if limit, err := strconv.Atoi(c.Query("limit")); err == nil && limit > 0 {
		most = limit
	}
	return fairness.Seats(o.Measure(info, min(most, fairness.MostCounted), fairness.MostBytes))
}

// beginsWithAll reports whether a watch first sends what is there: it asks for that, or
// names no version since when it wants changes.
func beginsWithAll(query url.Values) bool {
	if query.Has("sendInitialEvents") {
		return request.Flag(query, "sendInitialEvents")
	}
	version := query.Get("resourceVersion")
	return version == "" || version == "0"
}
