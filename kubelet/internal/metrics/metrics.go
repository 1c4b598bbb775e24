package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/podworker"
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
	m := &Metrics{
		counts: map[podruntime.Counted]prometheus.Counter{},
		Probes: newProbeMetrics(),
	}
	for what, help := range countHelp {
		m.counts[what] = counter(string(what), help)
		registry.MustRegister(m.counts[what])
	}
	m.measureWork(registry)
	m.measureRuntime(registry)
	m.measureEnds(registry)
	m.measureStarts(registry)
	m.measureNode(registry)
	m.measureResizes(registry)
	return m
}

// measureWork makes the metrics of the pod workers.
func (m *Metrics) measureWork(registry *prometheus.Registry) {
	m.WorkerStart = histogram("pod_worker_start_duration_seconds", "Duration in seconds from kubelet seeing a pod to starting a worker.",
		prometheus.DefBuckets)
	m.work = histograms("pod_worker_duration_seconds",
		"Duration in seconds to sync a single pod. Broken down by operation type: create, update, sync, kill, or terminated.",
		prometheus.DefBuckets, "operation_type")
	m.Orphans = counter("orphaned_runtime_pods_total",
		"Number of pods that have been detected in the container runtime without being already known to the pod worker. This typically "+
			"indicates the kubelet was restarted while a pod was force deleted in the API or in the local configuration, which is unusual.")
	registry.MustRegister(m.WorkerStart, m.work, m.Orphans)
}

// measureRuntime makes the metrics of calls of the runtime, and of what it tells.
func (m *Metrics) measureRuntime(registry *prometheus.Registry) {
	m.operations = counters("runtime_operations_total", "Cumulative number of runtime operations by operation type.", "operation_type")
	m.operationTime = histograms("runtime_operations_duration_seconds",
		"Duration in seconds of runtime operations. Broken down by operation type.",
		prometheus.ExponentialBuckets(0.005, 2.5, 14), "operation_type")
	m.operationFails = counters("runtime_operations_errors_total", "Cumulative number of runtime operation errors by operation type.",
		"operation_type")
	m.losingSupport = gauges("cri_losing_support",
		"the Kubernetes version that the currently running CRI implementation will lose support on if not upgraded.", "version")
	m.relist = histogram("pleg_relist_duration_seconds", "Duration in seconds for relisting pods in PLEG.", prometheus.DefBuckets)
	m.relistInterval = histogram("pleg_relist_interval_seconds", "Interval in seconds between relisting in PLEG.", prometheus.DefBuckets)
	m.Streams = counter("evented_pleg_connection_success_count", "The number of times a streaming client was obtained to receive CRI Events.")
	m.StreamErrors = counter("evented_pleg_connection_error_count",
		"The number of errors encountered during the establishment of streaming connection with the CRI runtime.")
	m.StreamLatency = histogram("evented_pleg_connection_latency_seconds",
		"The latency of streaming connection with the CRI runtime, measured in seconds.", prometheus.DefBuckets)
	registry.MustRegister(m.operations, m.operationTime, m.operationFails, m.losingSupport, m.relist, m.relistInterval,
		m.Streams, m.StreamErrors, m.StreamLatency)
}

// measureEnds makes the metrics of pods that end for the node's reasons.
func (m *Metrics) measureEnds(registry *prometheus.Registry) {
	m.Evictions = counters("evictions", "Cumulative number of pod evictions by eviction signal", "eviction_signal")
	m.Preemptions = counters("preemptions", "Cumulative number of pod preemptions by preemption resource", "preemption_signal")
	m.ShutdownStart = gauge("graceful_shutdown_start_time_seconds", "Last graceful shutdown start time since unix epoch in seconds")
	m.ShutdownEnd = gauge("graceful_shutdown_end_time_seconds", "Last graceful shutdown end time since unix epoch in seconds")
	registry.MustRegister(m.Evictions, m.Preemptions, m.ShutdownStart, m.ShutdownEnd)
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
