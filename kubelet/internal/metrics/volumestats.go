package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/kubelet/internal/filesystem"
	"kctl/kubelet/internal/volume"
)

// volumeStats exports how full pods' claimed volumes are, as metrics with upstream's
// names. Paths of the host are left out, as upstream does.
type volumeStats struct{ volumes *volume.Manager }

func claimedDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kubelet_volume_stats_"+name, help, []string{"namespace", "persistentvolumeclaim"}, nil)
}

var claimedFigures = []struct {
	desc *prometheus.Desc
	of   func(filesystem.Space) uint64
}{
	{claimedDesc("capacity_bytes", "Capacity in bytes of the volume"), func(s filesystem.Space) uint64 { return s.Capacity }},
	{claimedDesc("available_bytes", "Number of available bytes in the volume"), func(s filesystem.Space) uint64 { return s.Available }},
	{claimedDesc("used_bytes", "Number of used bytes in the volume"), func(s filesystem.Space) uint64 { return s.Used }},
	{claimedDesc("inodes", "Maximum number of inodes in the volume"), func(s filesystem.Space) uint64 { return s.Inodes }},
	{claimedDesc("inodes_free", "Number of free inodes in the volume"), func(s filesystem.Space) uint64 { return s.InodesFree }},
	{claimedDesc("inodes_used", "Number of used inodes in the volume"), filesystem.Space.InodesUsed},
}

// Describe implements prometheus.Collector.
func (volumeStats) Describe(descs chan<- *prometheus.Desc) {
	for _, figure := range claimedFigures {
		descs <- figure.desc
	}
}

// Collect implements prometheus.Collector.
func (c volumeStats) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range c.volumes.Claimed() {
		space, err := filesystem.Of(one.Dir)
		if err != nil {
			continue // its pod has just ended
		}
		for _, figure := range claimedFigures {
			metrics <- prometheus.MustNewConstMetric(figure.desc, prometheus.GaugeValue, float64(figure.of(space)), one.Namespace, one.Name)
		}
	}
}
