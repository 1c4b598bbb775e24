// Package events tells people what happened to an object, as Event objects in
// the API: equal events are counted instead of repeated, similar ones are
// aggregated, and the rate for each object is limited (Kubernetes API, "Event
// v1 core"; the bounds are client-go's defaults).
//
// Schedulers and kubelets call it from anywhere; it never blocks them and
// never fails them. Events are for people: no program may depend on one.
package events
