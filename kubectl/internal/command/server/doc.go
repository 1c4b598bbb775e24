// Package server holds the verbs about the API server itself: what it serves
// (api-resources, api-versions), where it and its services are (cluster-info, and
// its dump), its version, and the way to it for other programs (proxy).
//
// Only the root of the command line calls it. Nothing here changes an object.
package server
