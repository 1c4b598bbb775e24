// Package objects tests what requests for objects are answered: what is
// completed, refused and kept, for every kind and verb, word for word as
// kube-apiserver has it.
package objects
