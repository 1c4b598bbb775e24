package backend

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// statusTimeout bounds how long a scrape waits for all members of etcd together.
const statusTimeout = time.Second

var size = prometheus.NewDesc("apiserver_storage_size_bytes", "Size of the file of each member of etcd, as the flags name them.", []string{"storage_cluster_id"}, nil)

// Describe implements prometheus.Collector.
func (*Backend) Describe(ch chan<- *prometheus.Desc) { ch <- size }

// Collect implements prometheus.Collector. Members that don't answer are left out.
func (b *Backend) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	for i, endpoint := range b.members() {
		status, err := b.Client.Status(ctx, endpoint)
		if err != nil {
			b.logger.Debug("etcd's size is unknown", zap.String("member", cmp.Or(endpoint, "embedded")), zap.Error(err))
			continue
		}
		ch <- prometheus.MustNewConstMetric(size, prometheus.GaugeValue, float64(status.DbSize), "etcd-"+strconv.Itoa(i))
	}
}

// members are the addresses of etcd's members; one that needs none if it is embedded.
func (b *Backend) members() []string {
	if len(b.flags.EtcdServers) == 0 {
		return []string{""}
	}
	return b.flags.EtcdServers
}
