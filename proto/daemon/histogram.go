package daemon

import "github.com/prometheus/client_golang/prometheus"

// NewHistogram is prometheus.NewHistogram with a native histogram beside the
// buckets, as every histogram of Kubernetes has since 1.37 (gate
// NativeHistograms): Prometheus reads it if it scrapes protobuf, and other
// scrapers get the buckets as ever.
func NewHistogram(opts prometheus.HistogramOpts) prometheus.Histogram {
	return prometheus.NewHistogram(native(opts))
}

// NewHistogramVec is NewHistogram with labels.
func NewHistogramVec(opts prometheus.HistogramOpts, labels []string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(native(opts), labels)
}

// native has upstream's resolution, so that histograms of its programs and ours
// add up without a loss: each bucket is a tenth wider than the one before. Beside
// it, there would be no buckets by default.
func native(opts prometheus.HistogramOpts) prometheus.HistogramOpts {
	if len(opts.Buckets) == 0 {
		opts.Buckets = prometheus.DefBuckets
	}
	opts.NativeHistogramBucketFactor, opts.NativeHistogramMaxBucketNumber = 1.1, 160
	return opts
}
