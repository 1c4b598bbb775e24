package event

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Bounds on the fields of events with an eventTime.
const (
	maxInstance = 128
	maxAction   = 128
	maxReason   = 128
	maxMessage  = 1024
)

// Strategy is the strategy of events, kept for ttl after their last change.
func Strategy(clock clock.PassiveClock, ttl time.Duration) registry.Strategy[*core.Event] {
	return registry.Strategy[*core.Event]{
		Resource: core.Events, Singular: "event", ShortNames: []string{"ev"},
		StoragePrefix: "events",
		New:           func() *core.Event { return new(core.Event) },
		TTL:           func(*core.Event) time.Duration { return ttl },
		Create: registry.CreateStrategy[*core.Event]{
			ValidateName: check.NameIsSegment,
			Validate:     func(_ context.Context, e *core.Event) field.ErrorList { return validate(e, "reportingComponent") },
		},
		Update: registry.UpdateStrategy[*core.Event]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Validate:           func(_ context.Context, e, _ *core.Event) field.ErrorList { return validate(e, "reportingComponent") },
		},
		Delete: registry.DeleteStrategy[*core.Event]{HasNoDependents: true},
		Read: registry.ReadStrategy[*core.Event]{
			Fields:  selectable,
			Columns: columns(),
			Row:     func(e *core.Event) []any { return row(e, clock.Now()) },
		},
	}
}

func selectable(e *core.Event) fields.Set {
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	return fields.Set{
		"involvedObject.kind":            e.InvolvedObject.Kind,
		"involvedObject.namespace":       e.InvolvedObject.Namespace,
		"involvedObject.name":            e.InvolvedObject.Name,
		"involvedObject.uid":             string(e.InvolvedObject.UID),
		"involvedObject.apiVersion":      e.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": e.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       e.InvolvedObject.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         source,
		"type":                           e.Type,
	}
}

// validate checks that an event is in the namespace of its object, unless it is of the newer form, with an
// eventTime; events about cluster-scoped objects are in default, those of the newer form also in
// kube-system. component is the version's name for the reporter.
func validate(e *core.Event, component string) field.ErrorList {
	var errs field.ErrorList
	about := e.InvolvedObject.Namespace
	where := field.NewPath("involvedObject", "namespace")
	switch {
	case about == "" && e.Namespace != "" && e.Namespace != metav1.NamespaceDefault &&
		(e.EventTime.IsZero() || e.Namespace != metav1.NamespaceSystem),
		about != "" && about != e.Namespace && e.EventTime.IsZero():
		errs = append(errs, field.Invalid(where, about, "does not match event.namespace"))
	}
	errs = append(errs, check.Subdomain(e.Namespace, field.NewPath("namespace"))...)
	if e.EventTime.IsZero() {
		return errs
	}
	return append(errs, validateReported(e, field.NewPath(component))...)
}

// validateReported checks the fields that events of the newer form, with an
// eventTime, must have in addition.
func validateReported(e *core.Event, component *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.ReportingController == "" {
		errs = append(errs, field.Required(component, ""))
	}
	errs = append(errs, check.QualifiedName(e.ReportingController, component)...)
	for _, f := range []struct {
		name, value string
		max         int
		required    bool
	}{
		{"reportingInstance", e.ReportingInstance, maxInstance, true},
		{"action", e.Action, maxAction, true},
		{"reason", e.Reason, maxReason, true},
		{"message", e.Message, maxMessage, false},
	} {
		if f.value == "" && f.required {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		if len(f.value) > f.max {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", fmt.Sprintf("can have at most %d characters", f.max)))
		}
	}
	return errs
}
