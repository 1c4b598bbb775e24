// Package evict has pods leave for others: it says why in their status, tells
// people by an event, and deletes them. Preemption decides who; the app's room
// calls the API.
//
// It does not wait for the pods to go: the feed sees that.
package evict
