// Package measured counts and times the requests to a store, in upstream's
// metrics, so that dashboards carry over, and in spans if requests are traced.
//
// The server wraps it around its store; callers do not know of it, and it
// changes no answer.
package measured
