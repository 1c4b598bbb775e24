// Package webhook asks the webhooks that users have registered about requests:
// MutatingAdmissionWebhook and ValidatingAdmissionWebhook (Kubernetes docs,
// "Dynamic Admission Control").
//
// A Follower keeps the registered webhooks in memory, ready to be asked; a
// request that none of them is about costs a look at that list. Mutating ones
// are asked one after the other, validating ones side by side. What a webhook
// answers is trusted in nothing but what it is asked: its answers have a bound
// in size and time, and what a patch makes of an object is decoded, defaulted
// and validated as if a client had sent it.
//
// The chain calls the plugins. They are never asked about webhooks and policies
// themselves, so that a webhook can't keep itself in place.
package webhook
