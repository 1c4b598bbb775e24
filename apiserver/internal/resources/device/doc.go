// Package device holds what is particular to the kinds by which pods get
// devices: classes, claims and their templates, the slices in which drivers
// publish devices, and taints (Kubernetes docs, "Dynamic Resource Allocation").
package device
