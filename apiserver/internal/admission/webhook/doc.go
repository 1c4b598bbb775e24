// Package webhook calls the webhooks that users have registered:
// MutatingAdmissionWebhook and ValidatingAdmissionWebhook (Kubernetes docs,
// "Dynamic Admission Control").
//
// A Follower keeps the registered webhooks in memory, ready to be called; a
// request that none of them selects costs a look at that list. Mutating
// webhooks are called one after the other, validating ones concurrently.
// Answers are not trusted: they are bounded in size and time, and a patched
// object is decoded, defaulted and validated as if a client had sent it.
//
// The chain calls the plugins. They ignore requests for webhooks and policies
// themselves, so that a webhook can't protect itself from removal; only the webhooks that
// are configured by files see them.
package webhook
