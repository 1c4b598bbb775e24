// Package failure answers a request with the Status of an error, in the form that
// the client accepts.
//
// Code that ends a request with an error calls it. internal/status determines
// what the client sees of the error.
package failure
