// Package resourcequota holds what is particular to resource quotas, which
// limit the total usage of a namespace's objects. The usage is in the status;
// admission adds to it, and a loop recounts it.
package resourcequota
