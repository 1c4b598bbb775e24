// Package synchandler handles what the sync loop routes: pods that come, change and go, looks at
// pods that are due, and rounds of cleaning up (handler.go, cleanup.go). It decides which new pods
// are admitted (admission.go), and which others end for a critical one (preempt.go).
//
// The sync loop calls the Handler, from its goroutine. It never starts or ends anything of a pod
// itself, which its worker does, and never waits for a pod, the runtime or, longer than to read the
// node once, the API server.
package synchandler
