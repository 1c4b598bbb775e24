package objects

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
)

// What a node authorizer forbids that has not heard of the pod yet is asked for
// again, but not for ever.
func TestWhatIsForbiddenAtFirst(t *testing.T) {
	a, o := newAPI(t)
	a.objects[mapPath] = &core.ConfigMap{Data: map[string]string{"k": "1"}}
	one := pod("a")
	o.Register(one)
	for what, ask := range map[string]func() error{
		"config map": func() error { _, err := o.ConfigMap(t.Context(), "ns", "m"); return err },
		"token":      func() error { _, err := o.Token(t.Context(), one, "", 600); return err },
	} {
		for _, forbidden := range []int{1000, 3} { // in this order: a token that was had is kept
			a.mu.Lock()
			a.forbid = forbidden
			a.mu.Unlock()
			allowed := forbidden == 3
			done := make(chan error, 1)
			go func() { done <- ask() }()
			if err := a.stepUntil(done); allowed != (err == nil) || !allowed && !apierrors.IsForbidden(err) {
				t.Errorf("%s, forbidden %d times: %v", what, forbidden, err)
			}
		}
	}
}

// stepUntil lets time pass as soon as somebody waits for it, until something is done.
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
