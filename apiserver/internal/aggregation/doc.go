// Package aggregation includes the APIs of other servers in this one's: an
// APIService names a service that serves a group and version, and requests for
// it are forwarded there (Kubernetes docs, "Kubernetes API Aggregation Layer").
//
// The server routes requests to it that no built-in resource answers, before it
// looks for custom resources, and gets those servers' documents from it.
// Requests are authenticated and authorized before; the other server is told
// the user. A slow or failing server delays only requests for its own
// resources: everything else is read in the background, in bounded time and
// size.
package aggregation
