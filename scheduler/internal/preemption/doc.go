// Package preemption evicts pods to make room for others: it says why in their
// status, writes an event, and deletes them. The plugin DefaultPreemption decides
// which; package app calls the API.
//
// It does not wait for the pods to go: the event handlers see that.
package preemption
