// Package failure answers a request with the Status of an error, in the form that
// the client accepts.
//
// Whoever ends a request with an error calls it. What the error is to the client,
// internal/status knows.
package failure
