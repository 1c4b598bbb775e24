package filters

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/fairness"
	"kctl/apiserver/internal/request"
	"kctl/proto/tracing"
)

// Headers say by which objects a request was placed: by their uids, which
// tell nothing to those who may not see the objects.
const (
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// FairnessOptions are what Fairness goes by.
type FairnessOptions struct {
	Controller *fairness.Controller
	// Count tells how many objects a list is of, no more than most.
	Count    func(info *request.Info, most int) int
	Timeout  time.Duration // of requests
	Registry prometheus.Registerer
}

// Fairness lets requests through as their priority levels have seats for them,
// after a while of waiting maybe, and answers 429 to those that there is none
// for. Watches keep theirs until they have sent what was there at first, and
// streams need none.
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
			fail(c, tooMany())
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

// mark sets the headers. Their values are shared, and nobody adds to them.
func mark(h http.Header, t *fairness.Ticket) {
	h[schemaHeader], h[levelHeader] = t.SchemaID(), t.LevelID()
}

// patience is how long a request waits at most for others before it: a quarter
// of the time that it has, as upstream's do, and of what requests may have.
func patience(ctx context.Context, wait time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(wait, time.Until(deadline)/4)
	}
	return wait
}

// seats is what a request costs: lists, by how many objects they are of.
func (o *FairnessOptions) seats(c *gin.Context, info *request.Info) int {
	if info.Verb != "list" || info.Name != "" {
		return 1
	}
	most := math.MaxInt
	if limit, err := strconv.Atoi(c.Query("limit")); err == nil && limit > 0 {
		most = limit
	}
	return fairness.Seats(o.Count(info, min(most, fairness.MostCounted)))
}
