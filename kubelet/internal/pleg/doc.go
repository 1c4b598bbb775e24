// Package pleg generates pod lifecycle events: it lists what the runtime has,
// compares it with what it had, brings the pod cache up to date for the pods
// that changed, and tells the sync loop.
//
// It lists often while things happen and seldom while nothing does; rooms that
// act on the runtime, or expect something from it, call RelistSoon. If the runtime has
// an event stream (CRI, GetContainerEvents), it asks only for the pod in
// question, and lists just for safety. It only reads from the runtime, and
// decides nothing about pods.
package pleg
