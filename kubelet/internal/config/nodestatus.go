package config

import "time"

// NodeStatus is what the node reports of itself, and how often.
type NodeStatus struct {
	MaxImages       int32 // -1 for all
	UpdateFrequency time.Duration
	ReportFrequency time.Duration
	LeaseDuration   time.Duration
}

func newNodeStatus() NodeStatus {
	return NodeStatus{MaxImages: 50, UpdateFrequency: 10 * time.Second, ReportFrequency: 5 * time.Minute, LeaseDuration: 40 * time.Second}
}
