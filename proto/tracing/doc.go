// Package tracing hands spans to an OpenTelemetry collector: how long a program
// took for what, as a tree that continues in the programs that it called.
//
// The API server and the kubelet make a Tracer when their configuration asks for one,
// as upstream's do (KEP-647, KEP-2831). Without one nothing is measured, and no
// request's header is read or written. It does not show a pod's whole way, which no
// single program runs; package relay does that.
package tracing
