package resources

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// The name that dashboards from before 1.34 use has one label.
var storageObjects = prometheus.NewDesc("apiserver_storage_objects", "Number of stored objects.", []string{"resource"}, nil)

// cacheMetrics are upstream's metrics of watch caches.
var cacheMetrics = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(cache.Stats) int64
}{
	{cacheDesc("apiserver_resource_objects", "Number of stored objects."), prometheus.GaugeValue,
		func(s cache.Stats) int64 { return int64(s.Objects) }},
	{cacheDesc("apiserver_watch_cache_events_received_total", "Changes that watch caches have got from etcd."), prometheus.CounterValue,
		func(s cache.Stats) int64 { return s.Changes }},
	{cacheDesc("apiserver_watch_cache_events_dispatched_total", "Changes that watch caches have given to watches."), prometheus.CounterValue,
		func(s cache.Stats) int64 { return s.Changes }},
	{cacheDesc("apiserver_watch_cache_initializations_total", "How often watch caches have read everything."), prometheus.CounterValue,
		func(s cache.Stats) int64 { return s.Initializations }},
	{cacheDesc("apiserver_watch_cache_resource_version", "Resource version of the last change in watch caches."), prometheus.GaugeValue,
		func(s cache.Stats) int64 { return s.Revision }},
	{cacheDesc("watch_cache_capacity", "Room for changes in watch caches."), prometheus.GaugeValue,
		func(s cache.Stats) int64 { return int64(s.Capacity) }},
	{cacheDesc("apiserver_cache_list_total", "Lists that watch caches have answered."), prometheus.CounterValue,
		func(s cache.Stats) int64 { return s.Memory.Lists }},
	{cacheDesc("apiserver_cache_list_fetched_objects_total", "Objects that were read from watch caches for lists."), prometheus.CounterValue,
		func(s cache.Stats) int64 { return s.Memory.Fetched }},
	{cacheDesc("apiserver_cache_list_returned_objects_total", "Objects in lists from watch caches."), prometheus.CounterValue,
		func(s cache.Stats) int64 { return s.Memory.Returned }},
}

// listMetrics are upstream's metrics of lists, whatever answered them.
var listMetrics = []struct {
	desc *prometheus.Desc
	of   func(cache.Listed) int64
}{
	{listDesc("total", "Number of lists.", noIndex), func(l cache.Listed) int64 { return l.Lists }},
	{listDesc("fetched_objects_total", "Objects that were read for lists.", noIndex), func(l cache.Listed) int64 { return l.Fetched }},
	{listDesc("evaluated_objects_total", "Objects that were decoded and compared with selectors for lists.", nil),
		func(l cache.Listed) int64 { return l.Evaluated }},
	{listDesc("returned_objects_total", "Objects in lists.", nil), func(l cache.Listed) int64 { return l.Returned }},
}

// noIndex is upstream's label of lists that read all objects, as all do there by default.
var noIndex = prometheus.Labels{"index": ""}

func listDesc(name, help string, labels prometheus.Labels) *prometheus.Desc {
	return prometheus.NewDesc("apiserver_storage_list_"+name, help, []string{"group", "resource", "storage"}, labels)
}

func cacheDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"group", "resource"}, nil)
}

// CacheMetrics are the metrics of what is stored, and of the caches that hold it.
type CacheMetrics struct {
	Builtin *Set
	// Custom yields custom resources with what their caches tell.
	Custom iter.Seq2[core.Resource, cache.Stats]
}

// Describe implements prometheus.Collector.
func (CacheMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range cacheMetrics {
		descriptions <- m.desc
	}
	for _, m := range listMetrics {
		descriptions <- m.desc
	}
	descriptions <- storageObjects
}

// counted is a store whose cache tells what it holds.
type counted interface {
	runner
	Info() registry.Info
	CacheStats() cache.Stats
}

// Collect implements prometheus.Collector: -1 objects, as in upstream, is an unknown number.
func (c CacheMetrics) Collect(out chan<- prometheus.Metric) {
	// A definition may have a built-in resource's name: two metrics with the same labels
	// would make the whole page an error.
	collected := sets.New[schema.GroupResource]()
	collect := func(r schema.GroupResource, s cache.Stats) {
		if collected.Has(r) {
			return
		}
		collected.Insert(r)
		for _, m := range cacheMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.of(s)), r.Group, r.Resource)
		}
		for _, m := range listMetrics {
			for storage, listed := range map[string]cache.Listed{"watchcache": s.Memory, "etcd": s.Stored} {
				out <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(m.of(listed)), r.Group, r.Resource, storage)
			}
		}
		out <- prometheus.MustNewConstMetric(storageObjects, prometheus.GaugeValue, float64(s.Objects), r.String())
	}
	for _, store := range c.Builtin.runners() {
		if store, ok := store.(counted); ok {
			collect(store.Info().Resource.GVR().GroupResource(), store.CacheStats())
		}
	}
	for r, s := range c.Custom {
		collect(r.GVR().GroupResource(), s)
	}
}
