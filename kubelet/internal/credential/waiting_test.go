package credential

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

// A plugin runs as long as somebody waits for its answer.
func TestWhoeverGivesUpDoesNotWait(t *testing.T) {
	b := newBed(t, "", nil)
	b.write("hangs", "", 0o600)
	p := b.node.plugins[0]
	p.timeout = time.Hour
	first, giveUp := context.WithCancel(t.Context())
	second, giveUpToo := context.WithCancel(t.Context())
	defer giveUpToo()
	answers := make(chan error, 2)
	for _, ctx := range []context.Context{first, second} {
		go func() {
			_, err := b.node.Lookup(ctx, pod("p", ""), "a.cloud.test/x")
			answers <- err
		}()
	}
	running := func(waiting int) (r *run) {
		for r == nil {
			p.mu.Lock()
			for _, one := range p.running {
				if one.waiting == waiting {
					r = one
				}
			}
			p.mu.Unlock()
			runtime.Gosched()
		}
		return r
	}
	r := running(2)
	giveUp()
	if err := <-answers; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if left := running(1); left != r {
		t.Error("another run was begun")
	}
	select {
	case <-r.done:
		t.Error("the plugin was ended while somebody waited")
	default:
	}
	giveUpToo()
	if err := <-answers; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	<-r.done
	if len(p.running) > 0 {
		t.Error("the run is kept")
	}
}
