// Package discover knows which resources an API server serves, by which names
// people call them, and which version of each to use. It caches what it learns
// in a file for a while, so that most commands need not ask first.
//
// The verbs' rooms (below command) call it. It never reads or changes objects.
package discover
