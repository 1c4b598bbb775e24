// Package evict evicts pods to make room for others: it says why in their
// status, writes an event, and deletes them. Preemption decides which; package
// app calls the API.
//
// It does not wait for the pods to go: the feed sees that.
package evict
