// Package pleg generates pod lifecycle events: it lists what the runtime has,
// compares it with what it had, brings the pod cache up to date for the pods
// that changed, and tells the sync loop.
//
// It lists often while things happen and seldom while nothing does; whoever
// acts on the runtime, or expects something of it, calls Poke. Where the runtime
// tells what happens (CRI, GetContainerEvents), it asks for the pod in question
// instead, and lists for safety's sake only. It only reads
// from the runtime, and decides nothing about pods.
package pleg
