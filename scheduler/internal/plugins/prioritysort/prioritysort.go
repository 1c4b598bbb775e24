// Package prioritysort is the plugin PrioritySort: the queue serves pods of
// higher priority first, and among equals the one that has waited longest. The
// profile builds it; the queue calls it under its lock.
package prioritysort

import "kctl/scheduler/framework"

// Name of the plugin in configurations and metrics.
const Name = "PrioritySort"

// Plugin implements QueueSort.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// Less implements framework.QueueSort.
func (*Plugin) Less(a, b *framework.QueuedPodInfo) bool {
	pa, pb := a.Priority, b.Priority
	if pa != pb {
		return pa > pb
	}
	return a.Timestamp.Before(b.Timestamp)
}
