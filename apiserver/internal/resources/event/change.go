package event

import (
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// validateChange checks what an update through events.k8s.io makes of an event: that
// group's events are told once, and only their series goes on. The core group lets its
// clients count up what they told. Fields have the core group's names, as upstream's
// messages do.
func validateChange(e *eventsv1.Event, old *core.Event) field.ErrorList {
	now := new(core.Event)
	take(e, now)
	errs := validate(now, "reportingController")
	if !equality.Semantic.DeepEqual(now.Series, old.Series) {
		errs = append(errs, validateSeries(e.Series)...)
	}
	for _, f := range []struct {
		name    string
		is, was any
	}{
		{"involvedObject", now.InvolvedObject, old.InvolvedObject},
		{"reason", now.Reason, old.Reason},
		{"message", now.Message, old.Message},
		{"source", now.Source, old.Source},
		{"firstTimestamp", now.FirstTimestamp, old.FirstTimestamp},
		{"lastTimestamp", now.LastTimestamp, old.LastTimestamp},
		{"count", now.Count, old.Count},
		{"type", now.Type, old.Type},
		{"action", now.Action, old.Action},
		{"related", now.Related, old.Related},
		{"reportingController", now.ReportingController, old.ReportingController},
		{"reportingInstance", now.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, check.Same(f.is, f.was, field.NewPath(f.name))...)
	}
	// Clients that write nanoseconds find microseconds stored.
	if !now.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		errs = append(errs, field.Invalid(field.NewPath("eventTime"), now.EventTime, check.Immutable))
	}
	return errs
}
