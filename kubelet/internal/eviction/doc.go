// Package eviction keeps a node alive that runs short of memory, disk or
// process ids, by ending pods before the kernel does (Kubernetes docs,
// "Node-pressure Eviction"), and ends pods that use more of the node's disk than
// they may ("Local ephemeral storage").
//
// The kubelet runs it. Every few seconds it looks at the node (signals.go),
// compares it with the thresholds (threshold.go), and says by the node's
// conditions what is short. If taking away what nobody uses does not help, it
// ends the pod that is to blame most (rank.go), one at a time. It decides, and
// has others act: it never talks to the runtime or to the API.
package eviction
