package event

import (
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// validateUpdate validates an update through events.k8s.io: that group's events are
// immutable, except for their series. The core group lets clients change counts.
// Fields have the core group's names, as in upstream's messages.
func validateUpdate(e *eventsv1.Event, old *core.Event) field.ErrorList {
	now := new(core.Event)
	ToCore(e, now)
	errs := validate(now, "reportingController")
	if !slices.Equal(e.Finalizers, old.Finalizers) {
		errs = append(errs, registry.ValidateQualifiedFinalizers(e.Finalizers, field.NewPath("metadata", "finalizers").Upstream())...)
	}
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
		errs = append(errs, check.Unchanged(f.is, f.was, field.NewPath(f.name))...)
	}
	// Nanoseconds are stored as microseconds.
	if !now.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		errs = append(errs, field.Invalid(field.NewPath("eventTime"), now.EventTime, check.Immutable))
	}
	return errs
}
