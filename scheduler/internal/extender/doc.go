// Package extender asks services outside the scheduler, over HTTP, what they
// think of nodes and pods (Kubernetes API, "kube-scheduler Configuration (v1)",
// Extender): which nodes cannot take a pod, which are better, which victims
// would do, and to bind.
//
// The cycle, preemption and explanations ask a Chain of all of them. Each
// question waits for its answer, at most the time configured; answers are
// bounded. It keeps nothing between two questions.
package extender
