package service

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/servicecidr"
)

// How an address or a port was assigned: as requested, or chosen by the server.
const (
	static  = "static"
	dynamic = "dynamic"
)

// metrics are upstream's metrics of allocations.
type metrics struct {
	addresses, addressErrors *prometheus.CounterVec // by range and scope
	ports, portErrors        *prometheus.CounterVec // by scope
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "kube_apiserver", Name: name, Help: help}, labels)
	}
	return &metrics{
		addresses:     counter("clusterip_allocator_allocation_total", "Number of Cluster IPs allocations", "cidr", "scope"),
		addressErrors: counter("clusterip_allocator_allocation_errors_total", "Number of errors trying to allocate Cluster IPs", "cidr", "scope"),
		ports:         counter("nodeport_allocator_allocation_total", "Number of NodePort allocations", "scope"),
		portErrors:    counter("nodeport_allocator_allocation_errors_total", "Number of errors trying to allocate NodePort", "scope"),
	}
}

// count counts an attempt.
func count(done, failed *prometheus.CounterVec, err error, labels ...string) {
	if err != nil {
		done = failed
	}
	done.WithLabelValues(labels...).Inc()
}

// scopeOf is how a value is assigned.
func scopeOf(isNamed bool) string {
	if isNamed {
		return static
	}
	return dynamic
}

var (
	allocatedIPs = prometheus.NewDesc("kube_apiserver_clusterip_allocator_allocated_ips",
		"Gauge measuring the number of allocated IPs for Services", []string{"cidr"}, nil)
	availableIPs = prometheus.NewDesc("kube_apiserver_clusterip_allocator_available_ips",
		"Gauge measuring the number of available IPs for Services", []string{"cidr"}, nil)
	allocatedPorts = prometheus.NewDesc("kube_apiserver_nodeport_allocator_allocated_ports",
		"Gauge measuring the number of allocated NodePorts for Services", nil, nil)
	availablePorts = prometheus.NewDesc("kube_apiserver_nodeport_allocator_available_ports",
		"Gauge measuring the number of available NodePorts for Services", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{allocatedIPs, availableIPs, allocatedPorts, availablePorts} {
		descriptions <- d
	}
	for _, c := range s.metrics.all() {
		c.Describe(descriptions)
	}
}

func (m *metrics) all() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{m.addresses, m.addressErrors, m.ports, m.portErrors}
}

// Collect implements prometheus.Collector. It counts addresses in the cache, and ports
// as this server last saw them.
func (s *Store) Collect(out chan<- prometheus.Metric) {
	for _, c := range s.metrics.all() {
		c.Collect(out)
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if ports := s.ports.allocated.Load(); ports >= 0 {
		gauge(allocatedPorts, float64(ports))
		gauge(availablePorts, float64(int64(s.ports.ports.Size)-ports))
	}
	for r, n := range s.addresses.allocated() {
		gauge(allocatedIPs, float64(n), r.String())
		gauge(availableIPs, float64(servicecidr.Size(r)-n), r.String())
	}
}

// allocated is how many addresses of each range are in use.
func (a *ipAllocator) allocated() map[netip.Prefix]uint64 {
	all, _, err := a.ranges.ListTyped(context.Background(), "", registry.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil // not read yet
	}
	out := map[netip.Prefix]uint64{}
	for _, c := range all {
		for _, r := range servicecidr.Of(c) {
			out[r] = 0
		}
	}
	ranges := slices.Collect(maps.Keys(out))
	for name := range a.ipAddresses.Names() {
		addr, err := netip.ParseAddr(name)
		if err != nil {
			continue
		}
		for _, r := range ranges {
			if r.Contains(addr) {
				out[r]++
			}
		}
	}
	return out
}
