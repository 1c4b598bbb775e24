// Package cache knows every node and what is on it: the pods that the API says
// are there, and those that the cycle has assumed there while their binding is
// under way, so that the next pod is placed without waiting for the answer.
//
// A pod in the cache goes through
//
//	(new) → assumed              the cycle decided
//	assumed → (gone)             Forget: the binding failed
//	assumed → assumed, expiring  FinishBinding: the binding was accepted
//	assumed, either → known      the watch shows it on a node
//	assumed, expiring → (gone)   Expire: the watch never did
//	(new) → known                somebody else bound it
//	any → (gone)                 Remove: the watch says it ended
//
// The event handlers write what the API says, the cycle assumes and forgets, and reads
// a Snapshot at the start of each attempt. The package does no I/O.
package cache
