// Package eviction keeps a node alive that runs short of memory, disk or process
// ids, by evicting pods before the kernel kills processes (Kubernetes docs,
// "Node-pressure Eviction"), and evicts pods that use more of the node's disk
// than they may ("Local ephemeral storage").
//
// The kubelet runs it. Every few seconds it looks at the node (signals.go),
// compares it with the thresholds (threshold.go), and sets the node's
// conditions accordingly. If removing what nobody uses does not help, it evicts
// the pod that is most to blame (rank.go), one at a time. It decides, and
// others act: it never talks to the runtime or to the API.
package eviction
