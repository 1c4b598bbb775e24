// Package garbagecollector removes what pods leave behind on a node: containers and
// sandboxes that ended, their logs, and everything of pods that are no longer
// known.
//
// It does a round once a minute by itself, and at once when asked to after a pod has
// been removed; what an evicted pod leaves it removes at once, whatever else there is to
// do. For pods that are still known it keeps, as upstream does, the newest dead instance
// of each container, so that its logs and its end can be read, and the newest sandbox;
// but nothing of a pod that was evicted and, if the node is short of disk space, of one
// that has ended.
//
// It never ends anything that runs, and does nothing before every source of
// pods has been heard: until then no pod is unknown.
package garbagecollector
