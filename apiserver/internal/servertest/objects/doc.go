// Package objects tests the answers to requests for objects: what is defaulted,
// refused and stored, for every kind and verb, word for word as kube-apiserver
// answers.
package objects
