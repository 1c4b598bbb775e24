// Package serving is the API server's port: its TLS configuration, the listener,
// and draining when it is told to stop.
//
// internal/server hands it the handler; it knows nothing of what is served.
package serving
