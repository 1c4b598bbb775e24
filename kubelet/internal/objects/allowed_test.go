package objects

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
)

// A node authorizer that has not seen the pod yet refuses; such requests are
// retried, but not for ever.
func TestWhatIsForbiddenAtFirst(t *testing.T) {
	one := pod("a")
	for what, ask := range map[string]func(o *Objects) error{
		"config map": func(o *Objects) error { _, err := o.ConfigMap(t.Context(), "ns", "m"); return err },
		"token":      func(o *Objects) error { _, err := o.Token(t.Context(), one, "", 600); return err },
	} {
		for _, forbidden := range []int{1000, 3} {
			a, o := newAPI(t)
			a.objects[mapPath] = &core.ConfigMap{Data: map[string]string{"k": "1"}}
			a.forbid = forbidden
			o.Register(one)
			allowed := forbidden == 3
			done := make(chan error, 1)
			go func() { done <- ask(o) }()
			if err := a.stepUntil(done); allowed != (err == nil) || !allowed && !apierrors.IsForbidden(err) {
				t.Errorf("%s, forbidden %d times: %v", what, forbidden, err)
			}
		}
	}
}

// After refusals for long enough, only one request is made, until another pod
// refers to the object: the authorizer may not have seen that pod yet.
func TestWhatStaysForbiddenIsBelieved(t *testing.T) {
	a, o := newAPI(t)
	a.forbid = 1000
	one, other := pod("a"), pod("b")
	o.Register(one)
	asked := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.requests[mapPath] + a.requests["/api/v1/namespaces/ns/serviceaccounts/robot/token"]
	}
	for _, step := range []struct {
		name string
		ask  func() error
		once bool
	}{
		{"config map", func() error { _, err := o.ConfigMap(t.Context(), "ns", "m"); return err }, false},
		{"config map again", func() error { _, err := o.ConfigMap(t.Context(), "ns", "m"); return err }, true},
		{"config map of another pod", func() error { o.Register(other); _, err := o.ConfigMap(t.Context(), "ns", "m"); return err }, false},
		{"token", func() error { _, err := o.Token(t.Context(), one, "", 600); return err }, false},
		{"token again", func() error { _, err := o.Token(t.Context(), one, "", 600); return err }, true},
		{"token of another pod", func() error { _, err := o.Token(t.Context(), other, "", 600); return err }, false},
	} {
		before := asked()
		done := make(chan error, 1)
		go func() { done <- step.ask() }()
		if err := a.stepUntil(done); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", step.name, err)
		}
		if n := asked() - before; n == 1 != step.once {
			t.Errorf("%s: asked for %d times", step.name, n)
		}
	}
}

// A caller that gives up does not count as refused for long enough: the next
// one waits as usual.
func TestWhoGivesUpBelievesNothing(t *testing.T) {
	a, o := newAPI(t)
	a.objects[mapPath] = &core.ConfigMap{Data: map[string]string{"k": "1"}}
	a.forbid = 1000
	o.Register(pod("a"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := o.ConfigMap(ctx, "ns", "m"); done <- err }()
	<-a.arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("after giving up: %v", err)
	}
	a.mu.Lock()
	a.forbid = 3
	a.mu.Unlock()
	go func() { _, err := o.ConfigMap(t.Context(), "ns", "m"); done <- err }()
	if err := a.stepUntil(done); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// stepUntil steps the clock whenever somebody waits for it, until done.
func (a *api) stepUntil(done <-chan error) error {
	for {
		select {
		case err := <-done:
			return err
		case <-a.arrived:
		default:
			if a.clock.HasWaiters() {
				a.clock.Step(forbiddenRetry.Max)
			}
		}
	}
}
