// Package volumes knows persistent volumes, the claims to them, storage classes
// and what nodes can mount, for the plugins that place pods by their volumes.
//
// It watches them from the first pod on that has a claim: a cluster without such
// pods costs nothing. It also remembers which volumes were chosen for claims and
// are not bound in the API yet. It writes nothing, and decides nothing about pods.
package volumes
