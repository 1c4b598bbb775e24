// Package rest is the project's one HTTP/JSON client of the Kubernetes API:
// kubeconfigs, TLS, tokens, typed errors, and bounded retries where the server
// asks for them.
//
// Every program may use it, against our API server or upstream's alike. It
// keeps no objects (that is watch's) and decides nothing about them.
package rest
