// Package scheme knows the Go type of every kind that the API server serves or
// may find in etcd. It is wider than proto/core's, which every program carries.
//
// Whoever encodes, decodes or describes objects of any kind asks it. It is
// complete after package initialisation and must not be changed.
package scheme
