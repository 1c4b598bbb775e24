// Package pods holds the verbs about single pods: run, with its wait; logs, exec,
// attach, cp, debug and port-forward; and the two that tell how a pod came to run,
// trace and explain-schedule. They share how an argument's pod and container are
// found (podof.go, logs.go).
//
// The root of the command line calls it, and package server for the logs of a
// dump. It has nothing to do with the pod templates of workloads.
package pods
