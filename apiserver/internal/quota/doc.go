// Package quota tracks the usage of resource quotas: what an object uses, which
// quotas it counts against, and what is used of a quota, including what is
// about to be (Kubernetes docs, "Resource Quotas").
//
// Admission charges through it before an object is stored, and the housekeeping
// loop recounts. Both write the status of quotas, and nothing else.
package quota
