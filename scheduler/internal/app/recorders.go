package app

import (
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/core"
	"kctl/proto/events"
)

// recorders are the event recorders by scheduler name: upstream's events name
// the profile as their source.
type recorders map[string]*events.Recorder

// Eventf implements events.Sink.
func (r recorders) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if recorder := r.of(obj); recorder != nil {
		recorder.Eventf(obj, eventType, reason, format, args...)
	}
}

// Laterf implements report.Sink.
func (r recorders) Laterf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if recorder := r.of(obj); recorder != nil {
		recorder.Laterf(obj, eventType, reason, format, args...)
	}
}

// tellingFor is who tells what happens for a pod of one of the profiles. The victims of its
// preemption may be another scheduler's.
func (r recorders) tellingFor(preemptor *core.Pod) events.Sink {
	return r[preemptor.Spec.SchedulerName]
}

// of is the recorder for a pod's scheduler; nil if this process has no such profile.
func (r recorders) of(obj runtime.Object) *events.Recorder {
	if pod, ok := obj.(*core.Pod); ok {
		return r[pod.Spec.SchedulerName]
	}
	return nil
}
