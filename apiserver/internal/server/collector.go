package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// The collector of garbage runs when the heap has grown by what lives in it. A
// server that holds little would collect many times a second when it has much
// to do; so as long as it does, the heap may grow by busyRoom first. When it
// has little to do, memory is worth more than time. It is, too, where much lives:
// most of that are encoded objects, which the collector need not look into.
const (
	busyRoom     = 64 << 20
	busyInterval = time.Second // collections closer to each other than that are of a busy server
	restPercent  = 100         // Go's own
	largePercent = 50          // where twice busyRoom lives, and more
	mostPercent  = 1000
)

// collector sets the pace after each collection.
type collector struct {
	mu      sync.Mutex
	last    time.Time
	percent int
	live    []metrics.Sample
}

var paceOnce sync.Once

// paceCollector adapts the pace from now on, unless the environment sets it.
func paceCollector() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	paceOnce.Do(func() {
		c := &collector{percent: restPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
		c.arm()
	})
}

// arm has adapt called after the next collection: it is told of an object that
// nobody holds.
func (c *collector) arm() {
	sentinel := &struct{ next *collector }{c}
	runtime.AddCleanup(sentinel, (*collector).adapt, c)
}

func (c *collector) adapt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	metrics.Read(c.live)
	percent := pace(now.Sub(c.last), c.live[0].Value.Uint64())
	c.last = now
	// Setting it stops the world for a moment.
	if percent > c.percent*5/4 || percent < c.percent*4/5 {
		debug.SetGCPercent(percent)
		c.percent = percent
	}
	c.arm()
}

// pace is by how much the heap may grow, in percent of what lives in it.
func pace(sinceLast time.Duration, live uint64) int {
	room := min(mostPercent, max(largePercent, int(busyRoom*100/max(live, 1))))
	if sinceLast > busyInterval {
		return min(restPercent, room)
	}
	return room
}
