package metrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/pullrecords"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// startBuckets are upstream's buckets for the start durations of pods.
var startBuckets = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}

// measureStarts makes the metrics of starts of pods and containers.
func (m *Metrics) measureStarts(registry *prometheus.Registry) {
	start := func(name, help string) prometheus.Histogram { return histogram(name, help, startBuckets) }
	m.PodStart = start("pod_start_duration_seconds",
		"Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run")
	m.podStartTotal = start("pod_start_total_duration_seconds",
		"Duration in seconds to start a pod since creation, including time to pull images and run init containers")
	m.podStartSLI = start("pod_start_sli_duration_seconds",
		"Duration in seconds to start a pod, excluding time to pull images and run init containers, measured from pod creation timestamp to "+
			"when the API has all its containers as started")
	m.started = counters("started_containers_total", "Cumulative number of containers started", "container_type")
	m.startFails = counters("started_containers_errors_total", "Cumulative number of errors when starting containers",
		"container_type", "code")
	m.terminated = counters("terminated_containers_total", "Cumulative number of containers that ended, by what they ended with.",
		"container_type", "exit_code", "reason")
	m.Rejections = counters("admission_rejections_total", "Cumulative number pod admission rejections by the Kubelet.", "reason")
	m.imagesRemoved = counters("image_garbage_collected_total",
		"Total number of images garbage collected by the kubelet, whether through disk usage or image age.", "reason")
	m.imagesAsked = counters("image_manager_ensure_image_requests_total", "Number of ensure-image requests processed by the kubelet.",
		"pull_policy", "present_locally", "pull_required")
	m.imageChecks = counters("imagemanager_image_mustpull_checks_total",
		"Counter for how many times kubelet checked whether credentials need to be re-verified to access an image.", "result")
	m.restarts = counters("restarted_pods_total",
		"Number of pods that have been restarted because they were deleted and recreated with the same UID while the kubelet was watching them "+
			"(common for static pods, extremely uncommon for API pods).", "static")
	for _, static := range []string{"", "true"} {
		m.restarts.WithLabelValues(static) // which is exported before the first restart, too
	}
	m.pulls = histograms("image_pull_duration_seconds", "Duration in seconds to pull an image.",
		[]float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}, "image_size_in_bytes")
	registry.MustRegister(m.PodStart, m.podStartTotal, m.podStartSLI, m.started, m.startFails, m.terminated, m.Rejections, m.imagesRemoved,
		m.imagesAsked, m.imageChecks, m.restarts, m.pulls)
}

// measureNode makes the metrics of what pods need from the node.
func (m *Metrics) measureNode(registry *prometheus.Registry) {
	m.groups = histograms("cgroup_manager_duration_seconds", "Duration in seconds for cgroup manager operations. Broken down by method.",
		prometheus.DefBuckets, "operation_type")
	m.storage = daemon.NewHistogramVec(prometheus.HistogramOpts{ // of no subsystem
		Name:    "storage_operation_duration_seconds",
		Help:    "Storage operation duration",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	}, []string{"volume_plugin", "operation_name", "status", "migrated"})
	m.StatusSent = histogram("pod_status_sync_duration_seconds",
		"Duration in seconds to sync a pod status update: from the change until the API has it, however many changes came in between.",
		[]float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60})
	m.ContainersPerPod = histogram("containers_per_pod_count", "The number of containers per pod.", prometheus.ExponentialBuckets(1, 2, 5))
	m.sandboxStart = histograms("run_podsandbox_duration_seconds",
		"Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.", prometheus.DefBuckets, "runtime_handler")
	m.sandboxFails = counters("run_podsandbox_errors_total",
		"Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.", "runtime_handler")
	m.startup = map[node.StartupPhase]prometheus.Gauge{}
	for leg, help := range startupHelp {
		m.startup[leg] = gauge(string(leg), help)
		registry.MustRegister(m.startup[leg])
	}
	registry.MustRegister(m.groups, m.storage, m.StatusSent, m.ContainersPerPod, m.sandboxStart, m.sandboxFails)
}

var startupHelp = map[node.StartupPhase]string{
	node.StartupPreKubelet:       "Duration in seconds of node startup before kubelet starts.",
	node.StartupPreRegistration:  "Duration in seconds of node startup before registration.",
	node.StartupRegistration:     "Duration in seconds of node startup during registration.",
	node.StartupPostRegistration: "Duration in seconds of node startup after registration.",
	node.Startup:                 "Duration in seconds of node startup in total.",
}

// ObserveStartup sets how long a part of the node's start took.
func (m *Metrics) ObserveStartup(leg node.StartupPhase, took time.Duration) {
	m.startup[leg].Set(took.Seconds())
}

// ObservePodStart leaves pods with state out of the SLI, which does not cover
// them.
func (m *Metrics) ObservePodStart(s status.Start) {
	m.podStartTotal.Observe(max(0, s.Took.Seconds())) // the creation time is in seconds, by another clock
	if !slices.ContainsFunc(s.Pod.Spec.Volumes, hasState) {
		m.podStartSLI.Observe(max(0, (s.Took - s.Excused).Seconds()))
	}
}

// hasState says that a volume is more than what the pod's own definition makes.
func hasState(v corev1.Volume) bool {
	return v.Secret == nil && v.ConfigMap == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.Projected == nil
}

// containerTypes are upstream's names, by the list of the pod's spec.
var containerTypes = map[string]string{"containers": "container", "initContainers": "init_container",
	"ephemeralContainers": "ephemeral_container"}

// ObserveStart takes a container's start; reason says why it failed, if it did.
func (m *Metrics) ObserveStart(fieldPath, reason string) {
	list, _, _ := strings.Cut(strings.TrimPrefix(fieldPath, "spec."), "{")
	m.started.WithLabelValues(containerTypes[list]).Inc()
	if reason != "" {
		m.startFails.WithLabelValues(containerTypes[list], reason).Inc()
	}
}

// endedTypes are upstream's names.
var endedTypes = map[status.ContainerKind]string{
	status.AppContainer: "container", status.InitContainer: "init_container", status.EphemeralContainer: "ephemeral_container",
}

// endReasons are those that runtimes and the kubelet give. Any other text of a runtime's would be
// kept, and exported, for ever.
var endReasons = []string{
	"", "Completed", "Error", "OOMKilled", "StartError", "ContainerCannotRun", "ContainerStatusUnknown", "DeadlineExceeded", "Unknown",
	"seccomp killed",
}

// ObserveEnd takes a container's end.
func (m *Metrics) ObserveEnd(kind status.ContainerKind, how *corev1.ContainerStateTerminated) {
	const other = "other"
	code, reason := other, other
	if how.ExitCode >= 0 && how.ExitCode <= 255 { // as the kernel has them
		code = strconv.Itoa(int(how.ExitCode))
	}
	if slices.Contains(endReasons, how.Reason) {
		reason = how.Reason
	}
	m.terminated.WithLabelValues(endedTypes[kind], code, reason).Inc()
}

// imageSizes are the size classes of images for the metrics of pulls.
var imageSizes = []struct {
	below uint64 // in units of a million bytes
	name  string
}{
	{10, "0-10MB"}, {100, "10MB-100MB"}, {500, "100MB-500MB"}, {1000, "500MB-1GB"}, {5000, "1GB-5GB"}, {10_000, "5GB-10GB"},
	{20_000, "10GB-20GB"}, {30_000, "20GB-30GB"}, {40_000, "30GB-40GB"}, {60_000, "40GB-60GB"}, {100_000, "60GB-100GB"},
}

// ObservePull takes a pull that succeeded.
func (m *Metrics) ObservePull(took time.Duration, size uint64) {
	class := "GT100GB"
	for _, one := range imageSizes {
		if size < one.below*1e6 {
			class = one.name
			break
		}
	}
	m.pulls.WithLabelValues(class).Observe(took.Seconds())
}

// ImageAsked counts a request for a container's image, by whether it was
// present and had to be pulled. With the policy Always, presence is not
// checked.
func (m *Metrics) ImageAsked(policy corev1.PullPolicy, present, pull *bool) {
	text := func(known *bool) string {
		if known == nil {
			return "unknown"
		}
		return strconv.FormatBool(*known)
	}
	m.imagesAsked.WithLabelValues(strings.ToLower(string(policy)), text(present), text(pull)).Inc()
}

// ImageChecked counts a check whether a pod may use a present image.
func (m *Metrics) ImageChecked(result pullrecords.Check) {
	m.imageChecks.WithLabelValues(string(result)).Inc()
}

// PodRestarted counts a pod that came again under its UID.
func (m *Metrics) PodRestarted(pod *core.Pod) { m.restarts.WithLabelValues(staticLabel(pod)).Inc() }

// ImageRemoved counts an image that was taken away, and why.
func (m *Metrics) ImageRemoved(reason string) { m.imagesRemoved.WithLabelValues(reason).Inc() }

// ObserveGroup takes how long something took of control groups.
func (m *Metrics) ObserveGroup(operation string, took time.Duration) {
	m.groups.WithLabelValues(operation).Observe(took.Seconds())
}

// ObserveSandbox takes how long it took to start a sandbox, or not to.
func (m *Metrics) ObserveSandbox(handler string, took time.Duration, err error) {
	m.sandboxStart.WithLabelValues(handler).Observe(took.Seconds())
	if err != nil {
		m.sandboxFails.WithLabelValues(handler).Inc()
	}
}

// ObserveStorage takes how long something took of volumes, or not to.
func (m *Metrics) ObserveStorage(plugin, operation string, took time.Duration, err error) {
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	m.storage.WithLabelValues(plugin, operation, status, "false").Observe(took.Seconds())
}
