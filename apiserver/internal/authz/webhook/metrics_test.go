package webhook

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authorizationv1 "k8s.io/api/authorization/v1"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// failing never answers.
type failing struct{ err error }

func (f failing) Ask(context.Context, any, any) error { return f.err }

// TestWhatIsCounted: requests are counted by the webhook's name and their
// result; those that match conditions exclude are not counted.
func TestWhatIsCounted(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	broken := errors.New("broken")
	aside := func(err error) Options {
		return Options{Name: "aside", Match: func(context.Context, *authorizationv1.SubjectAccessReviewSpec) (bool, error) { return false, err }}
	}
	for _, c := range []struct {
		options Options
		fails   error
	}{
		{Options{Name: "closed", FailClosed: true}, broken},
		{Options{Name: "open"}, broken},
		{Options{Name: "open"}, fmt.Errorf("late: %w", context.DeadlineExceeded)},
		{Options{Name: "open"}, context.Canceled},
		{aside(nil), nil},
		{aside(broken), nil},
	} {
		c.options.Metrics, c.options.Clock, c.options.Version = m, testingclock.NewFakePassiveClock(time.Now()), "v1"
		a := New(failing{c.fails}, c.options)
		_, _, _ = a.Authorize(t.Context(), &authz.Attributes{User: &request.User{Username: "jane"}, Info: request.Info{Verb: "get", Path: "/"}})
	}
	for _, c := range []struct {
		counter *prometheus.CounterVec
		labels  []string
		want    float64
	}{
		{m.requests, []string{"closed", "error"}, 1},
		{m.failOpen, []string{"closed", "error"}, 0},
		{m.requests, []string{"open", "error"}, 1},
		{m.requests, []string{"open", "timeout"}, 1},
		{m.requests, []string{"open", "canceled"}, 1},
		{m.failOpen, []string{"open", "error"}, 1},
		{m.failOpen, []string{"open", "timeout"}, 1},
		{m.failOpen, []string{"open", "canceled"}, 0},
		{m.conditionExclusions, []string{"Webhook", "aside"}, 1},
		{m.conditionErrors, []string{"Webhook", "aside"}, 1},
	} {
		if got := testutil.ToFloat64(c.counter.WithLabelValues(c.labels...)); got != c.want {
			t.Errorf("%v: %v, want %v", c.labels, got, c.want)
		}
	}
	if n := testutil.CollectAndCount(m.duration); n != 4 {
		t.Errorf("%d series of durations, want 4", n)
	}
}
