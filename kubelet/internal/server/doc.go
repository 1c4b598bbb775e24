// Package server is the kubelet's HTTPS port, where the API server, and clients
// that it authorizes, ask about a node's pods.
//
// Every request is authenticated (client certificate, or a bearer token that
// the API server reviews) and authorized (by the API server, for the node's
// subresource that the path belongs to) before any handler sees it; package
// auth does both. There is one file for each kind of request: logs; pods; exec,
// attach and port-forward, which are passed on to the runtime's streaming
// server; statistics; health and metrics.
//
// The read-only port, which is off unless it is asked for, has no authentication and
// serves only what says how the node and its pods are.
//
// Only package kubelet starts it. It changes nothing about a pod and keeps
// nothing between requests except the answers of reviews.
package server
