// Package source brings the pods that this node is to run: from the API
// server (a watch), from a directory of manifests, and from a URL. Each source
// gives its full state to the Mux, which keeps the state per source and sends
// the difference on as PodUpdates, in the order in which it arose.
//
// The kubelet starts the sources and its sync loop reads the updates. Pods of
// files and URLs (static pods) are named, identified and defaulted here. The
// package never writes to the API, and never looks at what runs.
package source
