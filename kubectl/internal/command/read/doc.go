// Package read holds the verbs that show objects: get, describe, events, wait,
// explain, top and kustomize.
//
// Only the root of the command line calls it. Nothing here changes anything on
// the server.
package read
