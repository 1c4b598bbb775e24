// Package serving listens on the kubelet's ports as its configuration says: the server's with TLS, the
// read-only one, and the one for health. It decides who is let in, and by which certificate we are known.
//
// The kubelet runs it with what there is to show. It answers nothing itself, which package server
// does.
package serving
