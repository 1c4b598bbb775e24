// Package auth authenticates and authorizes requests to the kubelet.
//
// Package server calls it for every request. It asks the API server for reviews
// and caches a bounded number of answers for a short while; it has no users or
// rules of its own.
package auth
