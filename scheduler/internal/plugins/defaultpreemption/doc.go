// Package defaultpreemption is the plugin DefaultPreemption: where no node has
// room for a pod, it looks for one where pods of lower priority could make
// some, chooses the node where that costs least, asks those pods to leave and
// nominates the pod to the node (Kubernetes docs, "Pod Priority and
// Preemption").
//
// The way through the room: PostFilter → preempt: ineligible (may the pod evict
// others) → findCandidates (which nodes could be made to fit, in a what-if) →
// selectVictimsOnNode (which pods would have to go there, as few as possible) →
// callExtenders → better (which node costs least) → prepareCandidate.
//
// It never binds: the pod is tried again when its victims are gone, and may
// find room elsewhere before.
package defaultpreemption
