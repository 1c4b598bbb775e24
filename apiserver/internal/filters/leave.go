package filters

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
)

// Goaway asks an HTTP/2 client, at random, to reconnect: a load balancer may
// then send it to another server. Its other requests go on.
func Goaway(chance float64) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.ProtoMajor == 2 && rand.Float64() < chance {
			c.Header("Connection", "close") // net/http's way to say GOAWAY
		}
		c.Next()
	}
}

// drainRetrySeconds is the delay in the Retry-After header while the server
// stops.
const drainRetrySeconds = 5

// Drain counts the requests that a server has to finish before it stops, and
// refuses those that come after draining has ended. It is safe for concurrent
// use.
type Drain struct {
	mu      sync.Mutex
	running int
	refuse  bool
	empty   chan struct{} // closed when refuse is set and nothing runs
}

// NewDrain returns a Drain that lets everything through.
func NewDrain() *Drain { return &Drain{empty: make(chan struct{})} }

// Filter is the link of the chain. What the server asks of itself is part of a request in
// flight, which could not be finished without.
func (d *Drain) Filter() gin.HandlerFunc {
	return func(c *gin.Context) {
		if authn.IsItself(c.Request.Context()) {
			c.Next()
			return
		}
		info := request.InfoFrom(c.Request.Context())
		if !d.enter(info) {
			c.Header("Connection", "close")
			fail(c, apierrors.NewTooManyRequests("the server is shutting down, please try again later", drainRetrySeconds))
			return
		}
		if info.LongRunning() || aboutHealth(info) {
			c.Next()
			return
		}
		defer d.leave()
		c.Next()
	}
}

func aboutHealth(info *request.Info) bool {
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/metrics"} {
		if info.Path == path || strings.HasPrefix(info.Path, path+"/") {
			return true
		}
	}
	return false
}

func (d *Drain) enter(info *request.Info) bool {
	if aboutHealth(info) {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse {
		return false
	}
	if !info.LongRunning() {
		d.running++
	}
	return true
}

func (d *Drain) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	d.settle()
}

func (d *Drain) settle() {
	if d.refuse && d.running == 0 {
		select {
		case <-d.empty:
		default:
			close(d.empty)
		}
	}
}

// Wait refuses new requests, and waits until those in flight have ended or ctx
// does.
func (d *Drain) Wait(ctx context.Context) {
	d.mu.Lock()
	d.refuse = true
	d.settle()
	d.mu.Unlock()
	select {
	case <-d.empty:
	case <-ctx.Done():
	}
}
