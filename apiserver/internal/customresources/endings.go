package customresources

import (
	"context"
	"errors"
	"sync"

	"kctl/proto/backoff"
)

// endings delete the objects of deleted definitions, beside the loop that establishes
// new ones: a conversion webhook that does not answer may take half a minute each time.
type endings struct {
	definitions *Definitions
	ctx         context.Context
	running     sync.WaitGroup
	places      chan struct{}
	// wake is sent to when definitions have to be looked at again.
	wake chan struct{}

	mu    sync.Mutex
	names map[string]bool // of the definitions that are ending
}

// maxEndings is how many definitions' objects are deleted at once; upstream's.
const maxEndings = 5

// newEndings returns endings that last as long as ctx.
func newEndings(ctx context.Context, d *Definitions) *endings {
	return &endings{definitions: d, ctx: ctx, places: make(chan struct{}, maxEndings), wake: make(chan struct{}, 1), names: map[string]bool{}}
}

// begin deletes the objects of a definition and releases it, if that is still to be done.
func (x *endings) begin(e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.names[e.name] || !hasFinalizer(e) {
		return
	}
	x.names[e.name] = true
	x.running.Go(func() {
		failed := x.run(e)
		x.mu.Lock()
		delete(x.names, e.name)
		x.mu.Unlock()
		if !failed && x.definitions.snapshot().entries[e.name] == e {
			return // the next change is the one just made
		}
		select {
		case x.wake <- struct{}{}:
		default:
		}
	})
}

// run is one attempt. After one that failed it waits for a while, unless the definition
// has changed meanwhile.
func (x *endings) run(e *entry) (failed bool) {
	select {
	case x.places <- struct{}{}:
	case <-x.ctx.Done():
		return true
	}
	// A definition that changes gets another store.
	ctx, cancel := context.WithCancel(x.ctx)
	stop := context.AfterFunc(e.store.ctx, cancel)
	err := x.definitions.deleteInstances(ctx, e)
	if errors.Is(err, errGone) {
		err = nil // nothing is left to do for this one
	}
	outdated := ctx.Err() != nil
	stop()
	cancel()
	<-x.places
	if err == nil || outdated {
		return err != nil
	}
	if !errors.Is(err, errInstancesRemain) {
		x.definitions.reportRetry(e, err)
	}
	_ = backoff.Sleep(x.ctx, x.definitions.options.Registry.Clock, retryInterval)
	return true
}
