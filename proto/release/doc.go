// Package release says which release of the project a program is, and which
// Kubernetes API it speaks. It is apart from package daemon so that kctl, which
// is no daemon, does not carry the metrics libraries.
package release
