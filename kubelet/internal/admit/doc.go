// Package admit decides whether a pod that was given to this node may run on
// it: whether it fits, whether its rules allow this node, and whether it asks
// only for what this kubelet can do. A refused pod ends as Failed, with a
// reason.
//
// The kubelet asks it once for each new pod, in the sync loop. It looks only at
// what it is given, and changes nothing.
package admit
