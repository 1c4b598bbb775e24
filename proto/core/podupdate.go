package core

import "fmt"

// PodOperation says what a PodUpdate does to the pods it carries.
type PodOperation int

const (
	// SET is the complete state of one source, as the kubelet's mux takes it. No update
	// has it: the mux sends on the difference to what it knew.
	SET PodOperation = iota
	// ADD carries pods that are new to their source.
	ADD
	// DELETE carries pods whose graceful deletion was asked for: they still
	// exist in the source, with a deletion timestamp.
	DELETE
	// REMOVE carries pods that are gone from their source.
	REMOVE
	// UPDATE carries pods whose desired state changed.
	UPDATE
	// RECONCILE carries pods whose desired state is unchanged, but whose status in
	// the source is not what the kubelet last reported.
	RECONCILE
)

var podOperationNames = [...]string{"SET", "ADD", "DELETE", "REMOVE", "UPDATE", "RECONCILE"}

func (o PodOperation) String() string {
	if o < 0 || int(o) >= len(podOperationNames) {
		return fmt.Sprintf("PodOperation(%d)", int(o))
	}
	return podOperationNames[o]
}

// The sources that a kubelet takes pods from. The values are those of the
// annotation kubernetes.io/config.source.
const (
	FileSource      = "file"
	HTTPSource      = "http"
	ApiserverSource = "api"
)

// PodUpdate is one message from a pod source, by way of the mux, to the
// kubelet's sync loop. Receivers must not change the pods.
type PodUpdate struct {
	Pods   []*Pod
	Op     PodOperation
	Source string
}
