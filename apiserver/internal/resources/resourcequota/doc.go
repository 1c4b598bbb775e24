// Package resourcequota says what is particular about resource quotas: how much
// of what the objects of a namespace may have together. What they have is in
// the status; admission adds to it, and a loop counts it again.
package resourcequota
