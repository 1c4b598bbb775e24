package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

// slow takes some time, and refuses deletes.
type slow struct {
	clock *testingclock.FakePassiveClock
	takes time.Duration
}

func (s slow) Handles(op Operation) bool { return op != Connect }

func (s slow) Admit(_ context.Context, a *Attributes) error {
	s.clock.SetTime(s.clock.Now().Add(s.takes))
	if a.Operation == Delete {
		return errors.New("not now")
	}
	return nil
}

func (s slow) Validate(ctx context.Context, a *Attributes) error { return s.Admit(ctx, a) }

// TestPluginsAreMeasured: every plugin that has a name is measured by itself,
// and all are measured together, even those without a name and those added to
// the chain later.
func TestPluginsAreMeasured(t *testing.T) {
	registry, clock := prometheus.NewRegistry(), testingclock.NewFakePassiveClock(time.Unix(1, 0))
	chain := NewChain(Named{slow{clock, time.Second}, "A"}).Measured(NewMeter(registry, clock)).
		With(slow{clock, 4 * time.Second}, Named{slow{clock, 2 * time.Second}, "B"})
	run := func(op Operation) {
		a := &Attributes{Operation: op, Resource: core.Pods}
		if err := chain.Admit(t.Context(), a); (err != nil) != (op == Delete) {
			t.Error(op, err)
		}
		if op != Delete {
			if err := chain.Validate(t.Context(), a); err != nil {
				t.Error(op, err)
			}
		}
	}
	run(Create)
	run(Delete)
	run(Connect)
	const plugin, step = "apiserver_admission_controller_admission_duration_seconds", "apiserver_admission_step_admission_duration_seconds"
	var got []string
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got = append(got, strings.Join(labels, " ")+" "+(time.Duration(m.GetHistogram().GetSampleSum())*time.Second).String())
		}
	}
	want := []string{
		"A CREATE false admit 1s", "A CREATE false validate 1s", "A DELETE true admit 1s", "B CREATE false admit 2s", "B CREATE false validate 2s",
		"CONNECT false admit 0s", "CONNECT false validate 0s", "CREATE false admit 7s", "CREATE false validate 7s", "DELETE true admit 1s",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if problems, err := testutil.GatherAndLint(registry, plugin, step); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
