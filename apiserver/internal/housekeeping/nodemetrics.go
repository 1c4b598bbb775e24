package housekeeping

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/informer"
)

// kube-controller-manager's metrics of nodes, under the same names.
var (
	zoneSize       = prometheus.NewDesc("node_collector_zone_size", "Nodes that are registered, by zone.", []string{"zone"}, nil)
	unhealthyNodes = prometheus.NewDesc("node_collector_unhealthy_nodes_in_zone", "Nodes that are not Ready, by zone.", []string{"zone"}, nil)
)

// zoneOf is a node's zone, as kube-controller-manager writes it; empty for
// nodes without one.
func zoneOf(labels map[string]string) string {
	region, zone := labels[corev1.LabelTopologyRegion], labels[corev1.LabelTopologyZone]
	if region == "" && zone == "" {
		return ""
	}
	return region + ":\x00:" + zone
}

// nodeCollector counts nodes when metrics are collected.
type nodeCollector struct{ nodes *informer.Informer[nodeState] }

func (c nodeCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- zoneSize
	descriptions <- unhealthyNodes
}

func (c nodeCollector) Collect(metrics chan<- prometheus.Metric) {
	size, unhealthy := map[string]float64{}, map[string]float64{}
	c.nodes.Each(func(_ informer.Key, node nodeState) {
		size[node.zone]++
		if node.conditions[corev1.NodeReady] != corev1.ConditionTrue {
			unhealthy[node.zone]++
		}
	})
	for zone, count := range size {
		metrics <- prometheus.MustNewConstMetric(zoneSize, prometheus.GaugeValue, count, zone)
		metrics <- prometheus.MustNewConstMetric(unhealthyNodes, prometheus.GaugeValue, unhealthy[zone], zone)
	}
}

// registerMetrics registers the metrics while this server's loop runs: of several
// servers, only the leader shows them.
func (n *nodeLifecycle) registerMetrics(metrics prometheus.Registerer) func(context.Context) error {
	return func(ctx context.Context) error {
		if metrics != nil {
			collector := nodeCollector{n.nodes}
			if err := metrics.Register(collector); err != nil {
				return fmt.Errorf("metrics of nodes: %w", err)
			}
			defer metrics.Unregister(collector)
		}
		<-ctx.Done()
		return ctx.Err()
	}
}
