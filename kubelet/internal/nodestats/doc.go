// Package nodestats measures what pods, containers and the node's daemons use, for clients of the
// kubelet's server and for its metrics: disks, by walking through them now and then (usages.go),
// and control groups and network interfaces, when somebody asks (groups.go).
//
// The server and the metrics ask it. It never decides by what it measures, as the eviction does.
package nodestats
