// Package aggregation takes the APIs of other servers into this one's: an
// APIService names a service that answers for a group and version, and requests
// for it are passed on there (Kubernetes docs, "Kubernetes API Aggregation
// Layer").
//
// The server routes requests to it that no built-in resource answers, before it
// looks for custom ones, and asks it for the documents of those servers. Who
// asks, and that they may, is decided before; the other server is told who it
// is. What another server does or fails to do delays nobody but those who ask
// for its own resources: everything else is read in the background, in bounded
// time and size.
package aggregation
