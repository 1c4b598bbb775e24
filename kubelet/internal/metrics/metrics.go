package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/podworker"
	"kctl/proto/daemon"
)

// Metrics have upstream's names and labels, so that dashboards carry over.
type Metrics struct {
	WorkerStart    prometheus.Histogram
	work           *prometheus.HistogramVec
	relist         prometheus.Histogram
	relistInterval prometheus.Histogram
	ShutdownStart  prometheus.Gauge
	ShutdownEnd    prometheus.Gauge
	Orphans        prometheus.Counter // pods that only the runtime knows
	Streams        prometheus.Counter
	StreamErrors   prometheus.Counter
	StreamLatency  prometheus.Histogram
	operations     *prometheus.CounterVec
	operationTime  *prometheus.HistogramVec
	operationFails *prometheus.CounterVec
	losingSupport  *prometheus.GaugeVec
	Evictions      *prometheus.CounterVec
	Preemptions    *prometheus.CounterVec
	counts         map[podruntime.Counted]prometheus.Counter

	PodStart, podStartTotal prometheus.Histogram
	podStartSLI             prometheus.Histogram
	StatusSent              prometheus.Histogram
	ContainersPerPod        prometheus.Histogram
	sandboxStart            *prometheus.HistogramVec
	sandboxFails            *prometheus.CounterVec
	started                 *prometheus.CounterVec
	startFails              *prometheus.CounterVec
	terminated              *prometheus.CounterVec
	Rejections              *prometheus.CounterVec
	pulls                   *prometheus.HistogramVec
	imagesAsked             *prometheus.CounterVec
	imagesRemoved           *prometheus.CounterVec
	imageChecks             *prometheus.CounterVec
	restarts                *prometheus.CounterVec
	groups                  *prometheus.HistogramVec
	storage                 *prometheus.HistogramVec
	resizesAsked            *prometheus.CounterVec
	resizeTime              *prometheus.HistogramVec
	startup                 map[node.StartupPhase]prometheus.Gauge
	Probes                  *ProbeMetrics
}

// New makes all but those that RegisterPopulation does, and registers them.
func New(registry *prometheus.Registry) *Metrics {
	// All buckets are upstream's: quantiles over the kubelets of a cluster, some of them
	// upstream's, are those of nothing if their buckets differ.
	histogram := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Subsystem: "kubelet", Name: name, Help: help, Buckets: prometheus.DefBuckets}
	}
	operationTime := histogram("runtime_operations_duration_seconds",
		"Duration in seconds of runtime operations. Broken down by operation type.")
	operationTime.Buckets = prometheus.ExponentialBuckets(0.005, 2.5, 14)
	m := &Metrics{
		WorkerStart: daemon.NewHistogram(histogram("pod_worker_start_duration_seconds",
			"Duration in seconds from kubelet seeing a pod to starting a worker.")),
		work: daemon.NewHistogramVec(histogram("pod_worker_duration_seconds",
			"Duration in seconds to sync a single pod. Broken down by operation type: create, update, sync, kill, or terminated."),
			[]string{"operation_type"}),
		relist:         daemon.NewHistogram(histogram("pleg_relist_duration_seconds", "Duration in seconds for relisting pods in PLEG.")),
		relistInterval: daemon.NewHistogram(histogram("pleg_relist_interval_seconds", "Interval in seconds between relisting in PLEG.")),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: "kubelet",
			Name:      "runtime_operations_total",
			Help:      "Cumulative number of runtime operations by operation type.",
		}, []string{"operation_type"}),
		operationTime: daemon.NewHistogramVec(operationTime, []string{"operation_type"}),
		operationFails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: "kubelet",
			Name:      "runtime_operations_errors_total",
			Help:      "Cumulative number of runtime operation errors by operation type.",
		}, []string{"operation_type"}),
	}
	m.losingSupport = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Subsystem: "kubelet",
		Name:      "cri_losing_support",
		Help:      "the Kubernetes version that the currently running CRI implementation will lose support on if not upgraded.",
	}, []string{"version"})
	m.Evictions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Subsystem: "kubelet", Name: "evictions", Help: "Cumulative number of pod evictions by eviction signal",
	}, []string{"eviction_signal"})
	m.Preemptions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Subsystem: "kubelet", Name: "preemptions", Help: "Cumulative number of pod preemptions by preemption resource",
	}, []string{"preemption_signal"})
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "kubelet", Name: name, Help: help})
	}
	m.Streams = counter("evented_pleg_connection_success_count", "The number of times a streaming client was obtained to receive CRI Events.")
	m.StreamErrors = counter("evented_pleg_connection_error_count",
		"The number of errors encountered during the establishment of streaming connection with the CRI runtime.")
	m.StreamLatency = daemon.NewHistogram(histogram("evented_pleg_connection_latency_seconds",
		"The latency of streaming connection with the CRI runtime, measured in seconds."))
	m.ShutdownStart = prometheus.NewGauge(prometheus.GaugeOpts{
		Subsystem: "kubelet",
		Name:      "graceful_shutdown_start_time_seconds",
		Help:      "Last graceful shutdown start time since unix epoch in seconds",
	})
	m.ShutdownEnd = prometheus.NewGauge(prometheus.GaugeOpts{
		Subsystem: "kubelet",
		Name:      "graceful_shutdown_end_time_seconds",
		Help:      "Last graceful shutdown end time since unix epoch in seconds",
	})
	m.Orphans = counter("orphaned_runtime_pods_total",
		"Number of pods that have been detected in the container runtime without being already known to the pod worker. This typically "+
			"indicates the kubelet was restarted while a pod was force deleted in the API or in the local configuration, which is unusual.")
	m.counts = map[podruntime.Counted]prometheus.Counter{}
	for what, help := range countHelp {
		m.counts[what] = counter(string(what), help)
		registry.MustRegister(m.counts[what])
	}
	m.measureStarts(registry)
	m.measureNode(registry)
	m.measureResizes(registry)
	m.Probes = newProbeMetrics()
	registry.MustRegister(m.ShutdownStart, m.ShutdownEnd, m.Orphans, m.Streams, m.StreamErrors, m.StreamLatency)
	registry.MustRegister(m.Evictions, m.Preemptions, m.WorkerStart, m.work, m.relist, m.relistInterval, m.operations, m.operationTime,
		m.operationFails, m.losingSupport)
	return m
}

var countHelp = map[podruntime.Counted]string{
	podruntime.StartedPods:              "Cumulative number of pods started",
	podruntime.StartedPodsFailed:        "Cumulative number of errors when starting pods",
	podruntime.UserNamespacedPods:       "Cumulative number of pods with user namespaces that were started.",
	podruntime.UserNamespacedPodsFailed: "Cumulative number of errors at starting pods with user namespaces.",
	podruntime.ImageVolumesRequested:    "Number of requested image volumes.",
	podruntime.ImageVolumesMounted:      "Number of image volumes that were mounted.",
	podruntime.ImageVolumesFailed:       "Number of image volumes that could not be mounted.",
	podruntime.HTTPHooksFellBack:        "Number of HTTPS lifecycle hooks that were answered over plain HTTP.",
}

// Count counts something that happened.
func (m *Metrics) Count(what podruntime.Counted) { m.counts[what].Inc() }

// ObserveWork takes how long a step of a pod worker took.
func (m *Metrics) ObserveWork(job podworker.Job, took time.Duration) {
	operation := job.Type.String()
	if job.Phase == podworker.Terminated {
		operation = "terminated"
	}
	m.work.WithLabelValues(operation).Observe(took.Seconds())
}

// ObserveRelist takes a relist of the runtime.
func (m *Metrics) ObserveRelist(took, interval time.Duration) {
	m.relist.Observe(took.Seconds())
	m.relistInterval.Observe(interval.Seconds())
}

// operationNames are upstream's for calls of the runtime.
var operationNames = map[string]string{
	"RunPodSandbox": "run_podsandbox", "StopPodSandbox": "stop_podsandbox", "RemovePodSandbox": "remove_podsandbox",
	"PodSandboxStatus": "podsandbox_status", "ListPodSandbox": "list_podsandbox",
	"CreateContainer": "create_container", "StartContainer": "start_container", "StopContainer": "stop_container",
	"RemoveContainer": "remove_container", "ContainerStatus": "container_status", "ListContainers": "list_containers",
	"PullImage": "pull_image", "ImageStatus": "image_status", "ListImages": "list_images", "RemoveImage": "remove_image",
	"ExecSync": "exec_sync", "Exec": "exec", "Attach": "attach", "PortForward": "port_forward",
	"Version": "version", "Status": "status", "RuntimeConfig": "runtime_config", "UpdateRuntimeConfig": "update_runtime_config",
	"ImageFsInfo": "image_fs_info", "ContainerStats": "container_stats", "ListContainerStats": "list_container_stats",
	"PodSandboxStats": "podsandbox_stats", "ListPodSandboxStats": "list_podsandbox_stats",
	"UpdateContainerResources": "update_container", "UpdatePodSandboxResources": "update_podsandbox_resources",
	"ReopenContainerLog": "reopen_container_log", "CheckpointContainer": "checkpoint_container", "GetContainerEvents": "get_container_events",
}

// ObserveRuntime takes a call of the runtime.
func (m *Metrics) ObserveRuntime(method string, took time.Duration, err error) {
	operation, ok := operationNames[method]
	if !ok {
		operation = method
	}
	m.operations.WithLabelValues(operation).Inc()
	m.operationTime.WithLabelValues(operation).Observe(took.Seconds())
	if err != nil {
		m.operationFails.WithLabelValues(operation).Inc()
	}
	if method == "RuntimeConfig" && cri.IsUnimplemented(err) {
		m.losingSupport.WithLabelValues(runtimeConfigNeeded).Set(1)
	}
}

// runtimeConfigNeeded is the version from which on upstream's kubelet needs runtimes that report their
// configuration.
const runtimeConfigNeeded = "1.38.0"
