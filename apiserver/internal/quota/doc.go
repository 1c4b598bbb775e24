// Package quota keeps the usage of resource quotas: what an object uses, which
// quotas it counts for, and what of a quota is used, with what is about to be
// (Kubernetes docs, "Resource Quotas").
//
// Admission reserves through it before an object is stored, and the
// housekeeping loop counts again. Both write the status of quotas, and nothing
// else.
package quota
