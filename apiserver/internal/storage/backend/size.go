package backend

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// statusTimeout bounds how long a scrape waits for each member of etcd.
const statusTimeout = time.Second

// clusterID is upstream's name of the etcd that --etcd-servers names; further ones are
// those of --etcd-servers-overrides, which we have not.
const clusterID = "etcd-0"

var size = prometheus.NewDesc("apiserver_storage_size_bytes", "Size of etcd's file, at the first of its members that answers.",
	[]string{"storage_cluster_id"}, nil)

// Describe implements prometheus.Collector.
func (*Backend) Describe(ch chan<- *prometheus.Desc) { ch <- size }

// Collect implements prometheus.Collector. If no member answers, there is no series.
func (b *Backend) Collect(ch chan<- prometheus.Metric) {
	for _, endpoint := range b.members() {
		bytes, err := b.sizeOf(endpoint)
		if err != nil {
			b.logger.Debug("etcd's size is unknown", zap.String("member", cmp.Or(endpoint, "embedded")), zap.Error(err))
			continue
		}
		ch <- prometheus.MustNewConstMetric(size, prometheus.GaugeValue, float64(bytes), clusterID)
		return
	}
}

func (b *Backend) sizeOf(endpoint string) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	status, err := b.Client.Status(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	return status.DbSize, nil
}

// members are the addresses of etcd's members; one that needs none if it is embedded.
func (b *Backend) members() []string {
	if len(b.flags.EtcdServers) == 0 {
		return []string{""}
	}
	return b.flags.EtcdServers
}
