// Package scheme knows the Go type of every kind that the API server serves or
// may find in etcd. It is larger than proto/core's, which every program
// includes.
//
// Use it to encode, decode or describe objects of any kind. It is complete
// after package initialisation and must not be changed.
package scheme
