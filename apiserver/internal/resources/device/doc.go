// Package device says what is particular about the kinds by which pods get
// devices of nodes: classes, claims and their templates, the slices in which
// drivers tell what there is, and taints on it (Kubernetes docs, "Dynamic
// Resource Allocation").
package device
