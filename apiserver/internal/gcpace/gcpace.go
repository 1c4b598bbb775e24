// Package gcpace sets how often Go's garbage collector runs in a server that
// holds little memory and is very busy at times.
//
// There is one collector per process, so the package has global state; the
// program's main loop starts it. Users' GOGC and GOMEMLIMIT take precedence.
package gcpace

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// By default, the garbage collector runs when the heap has doubled. A server with
// little live memory would collect many times a second when it is busy, so while
// it is, the heap may grow by busyRoom first. When it is idle, memory is worth
// more than time: the heap at most doubles, and grows by no more than restRoom if
// much is live, since most of that are encoded objects, which the collector need
// not scan. What a busy time has left behind is returned to the system some time
// after it.
const (
	busyRoom     = 64 << 20
	restRoom     = 32 << 20
	busyShare    = 5                // a busy server's room shrinks by this part of what is live
	busyInterval = time.Second      // collections closer to each other than this mean a busy server
	quietAfter   = 10 * time.Second // without a collection, the busy time is over
	restPercent  = 100              // Go's own
	largePercent = 25               // the heap may grow by at least this part of what is live
	mostPercent  = 1000
)

// collector sets the pace after each collection.
type collector struct {
	mu      sync.Mutex
	last    time.Time
	percent int
	live    []metrics.Sample
	quiet   *time.Timer // runs in busy times
}

// Start sets the pace from now on, once in a process.
func Start() { process() }

// process is the process's collector; nil where the environment sets the pace.
var process = sync.OnceValue(func() *collector {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	c := &collector{percent: restPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	c.quiet = time.AfterFunc(quietAfter, debug.FreeOSMemory) // collects, which ends the busy time
	c.arm()
	return c
})

// Started returns the memory that a server's start took, once in a process.
var Started = sync.OnceFunc(func() {
	c := process()
	if c == nil {
		return
	}
	c.mu.Lock()
	c.last = time.Time{} // what follows is idle time
	c.mu.Unlock()
	debug.FreeOSMemory()
})

// arm makes the runtime call adapt after the next collection, as the cleanup of
// an unreachable object.
func (c *collector) arm() {
	sentinel := &struct{ next *collector }{c}
	runtime.AddCleanup(sentinel, (*collector).adapt, c)
}

func (c *collector) adapt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	metrics.Read(c.live)
	busy := now.Sub(c.last) < busyInterval
	percent := pace(busy, c.live[0].Value.Uint64())
	c.last = now
	// Setting it stops the world for a moment.
	if percent > c.percent*5/4 || percent < c.percent*4/5 {
		debug.SetGCPercent(percent)
		c.percent = percent
	}
	if c.quiet.Stop(); busy {
		c.quiet.Reset(quietAfter)
	}
	c.arm()
}

// pace is by how much the heap may grow, in percent of what is live.
func pace(busy bool, live uint64) int {
	room, most := restRoom, restPercent
	if busy {
		room, most = max(restRoom, busyRoom-int(live/busyShare)), mostPercent
	}
	return min(most, max(largePercent, int(uint64(room)*100/max(live, 1))))
}
