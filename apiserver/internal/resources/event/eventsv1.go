package event

import (
	"fmt"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"

	corev1 "k8s.io/api/core/v1"
)

// EventsV1 shows the events of the core group as events of events.k8s.io, which
// are the same objects under newer names.
func EventsV1(events *registry.Store[*core.Event]) registry.Resource {
	info := events.Info()
	info.Resource = core.Resource{Group: eventsv1.GroupName, Version: "v1", Name: "events", Kind: "Event", Namespaced: true}
	info.Columns = nil
	return registry.NewObjectView(registry.View{
		Stored: events, Shown: info,
		NewKind: func() core.Object { return new(eventsv1.Event) },
		Show:    func(stored core.Object) (core.Object, error) { return fromCore(stored.(*core.Event)), nil },
		WriteBack: func(shown, stored core.Object) error {
			ToCore(shown.(*eventsv1.Event), stored.(*core.Event))
			return nil
		},
		Validate: func(shown core.Object) field.ErrorList { return validateNew(shown.(*eventsv1.Event)) },
		ValidateUpdate: func(shown, stored core.Object) field.ErrorList {
			return validateUpdate(shown.(*eventsv1.Event), stored.(*core.Event))
		},
		StoredField: coreField,
	})
}

// coreField is the core group's name of a field by which events can be selected in this one.
func coreField(name string) string {
	switch name {
	case "reason", "type", "metadata.name", "metadata.namespace":
		return name
	case "reportingController":
		return "reportingComponent"
	}
	if field, ok := strings.CutPrefix(name, "regarding."); ok {
		return "involvedObject." + field
	}
	return ""
}

func fromCore(e *core.Event) *eventsv1.Event {
	out := &eventsv1.Event{
		ObjectMeta: *e.ObjectMeta.DeepCopy(), EventTime: e.EventTime, ReportingController: e.ReportingController,
		ReportingInstance: e.ReportingInstance, Action: e.Action, Reason: e.Reason, Regarding: e.InvolvedObject, Related: e.Related,
		Note: e.Message, Type: e.Type, DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp,
		DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count,
	}
	if s := e.Series; s != nil {
		out.Series = &eventsv1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	return out
}

// ToCore writes an event of events.k8s.io into one of the core group.
func ToCore(e *eventsv1.Event, into *core.Event) {
	*into = core.Event{
		ObjectMeta: *e.ObjectMeta.DeepCopy(), EventTime: e.EventTime, ReportingController: e.ReportingController,
		ReportingInstance: e.ReportingInstance, Action: e.Action, Reason: e.Reason, InvolvedObject: e.Regarding, Related: e.Related,
		Message: e.Note, Type: e.Type, Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp,
		LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
	}
	if s := e.Series; s != nil {
		into.Series = &corev1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
}

// minSeries is the least count of a series.
const minSeries = 2

func validateSeries(s *eventsv1.EventSeries) field.ErrorList {
	var errs field.ErrorList
	if s == nil {
		return nil
	}
	if s.Count < minSeries {
		errs = append(errs, field.Invalid(field.NewPath("series", "count"), "", fmt.Sprintf("should be at least %d", minSeries)))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series", "lastObservedTime"), ""))
	}
	return errs
}

// validateNew checks what the core group does not require: an event of this
// group has an eventTime, and none of the older fields.
func validateNew(e *eventsv1.Event) field.ErrorList {
	stored := new(core.Event)
	ToCore(e, stored)
	errs := validate(stored, "reportingController")
	errs = append(errs, registry.ValidateQualifiedFinalizers(e.Finalizers, field.NewPath("metadata", "finalizers").Upstream())...)
	if e.Name != "" {
		errs = append(errs, check.Messages(field.NewPath("metadata", "name"), e.Name, check.NameIsSubdomain(e.Name, false))...)
	}
	if e.GenerateName != "" {
		errs = append(errs, check.Messages(field.NewPath("metadata", "generateName"), e.GenerateName,
			check.NameIsSubdomain(e.GenerateName, true))...)
	}
	errs = append(errs, validateSeries(e.Series)...)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %s", e.Type)))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !e.DeprecatedFirstTimestamp.Equal(&metav1.Time{}) && !e.DeprecatedFirstTimestamp.IsZero()},
		{"lastTimestamp", !e.DeprecatedLastTimestamp.IsZero()},
		{"count", e.DeprecatedCount != 0},
		{"source", e.DeprecatedSource != corev1.EventSource{}},
	} {
		if f.set {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	return errs
}
