// Package admit decides whether a pod that was given to this node may run on
// it: whether it fits, whether it wants to be here, and whether it asks only
// for what this kubelet can do. What it refuses ends as Failed, with a reason.
//
// The kubelet asks it once for each new pod, in the sync loop. It looks at
// what it is given, and changes nothing.
package admit
