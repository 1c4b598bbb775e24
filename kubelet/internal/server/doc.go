// Package server is the kubelet's HTTPS port: what the API server, and whoever
// it lets, may ask of a node's pods.
//
// Every request is authenticated (client certificate, or a bearer token that
// the API server reviews) and authorized (by the API server, for the node's
// subresource that the path belongs to) before any handler sees it; package
// auth does both. The handlers are one file for each thing that can be asked:
// logs, pods, exec, attach and port-forward, which are handed on to the
// runtime's streaming server, statistics, health and metrics.
//
// Only the kubelet's assembly starts it. It changes nothing about a pod and
// keeps nothing between requests but the answers of reviews.
package server
