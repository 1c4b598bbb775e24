// Package pods holds the verbs about single pods: run, with its wait; logs, exec,
// attach, cp, debug and port-forward; and the two that tell how a pod came to run,
// trace and explain-schedule. They share how the pod and the container of an
// argument are found (podof.go, logs.go).
//
// The root of the command line calls it, and package server for the logs of a
// dump. The pod templates of workloads are not its business.
package pods
