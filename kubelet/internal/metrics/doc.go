// Package metrics has the kubelet's metrics of itself and its pods, under
// upstream's names and labels, so that dashboards carry over.
//
// Package kubelet makes them and gives most rooms the functions with which to
// report; synchandler and evictor, which only carry out, count here themselves.
// metrics.go and measure.go have what is counted as it happens, probes.go has
// the metrics of each probed container, podmetrics.go and volumestats.go what
// is counted when metrics are scraped.
package metrics
