// Package metrics has the figures that the kubelet tells of itself and its pods, by
// upstream's names and labels, so that dashboards carry over.
//
// Who assembles the kubelet makes them and gives each room the part that it is to
// feed: no room knows of this one. metrics.go and measure.go have what is counted as
// it happens, probes.go what is of each container that is probed, population.go and
// claims.go what is counted when somebody asks.
package metrics
