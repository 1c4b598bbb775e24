// Package volumes knows persistent volumes, the claims to them, storage classes
// and what nodes can mount, for the plugins that place pods by their volumes.
//
// It starts watching them with the first pod that has a claim, or an in-tree volume
// that a CSI driver mounts, so a cluster without such pods pays nothing. It also
// remembers which volumes were chosen for claims and are not bound in the API yet. It
// writes nothing, and decides nothing about pods.
package volumes
