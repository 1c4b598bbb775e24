package metrics

import (
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
)

// podMetrics exports how many pods, containers and volumes there currently are,
// as metrics with upstream's names.
type podMetrics struct{ Sources }

// Sources are where the numbers come from.
type Sources struct {
	NodeName string
	Pods     *podmanager.Manager
	Active   func(*core.Pod) bool // whether a pod holds resources of the node
	Status   func(types.UID) (core.PodStatus, bool)
	Cache    *podcache.Cache
	Workers  *podworker.Workers
	Volumes  *volume.Manager
	Relisted func() time.Time // when the runtime was listed last
	// Logs are the bytes that containers' logs have, by pod and container.
	Logs func() map[types.UID]map[string]uint64
	// Protected is the memory, in bytes, that is kept for guaranteed and for burstable pods.
	Protected func() (guaranteed, burstable int64)
	// Pulls counts what is on disk about pulled images: pulls that have been
	// begun, and images that were pulled.
	Pulls func() (intents, records int, err error)
}

// RegisterPopulation has those metrics told that are counted when somebody asks.
func RegisterPopulation(registry *prometheus.Registry, s Sources) {
	registry.MustRegister(podMetrics{s}, volumeStats{s.Volumes})
}

func populationDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	nodeNameDesc = populationDesc("kubelet_node_name", "The node's name. The count is always 1.", "node")
	desiredDesc  = populationDesc("kubelet_desired_pods",
		"The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver.", "static")
	activeDesc = populationDesc("kubelet_active_pods",
		"The number of pods the kubelet considers active and which are being considered when admitting new pods. static is true if the "+
			"pod is not from the apiserver.", "static")
	mirrorsDesc = populationDesc("kubelet_mirror_pods",
		"The number of mirror pods the kubelet will try to create (one per admitted static pod)")
	ephemeralDesc = populationDesc("kubelet_managed_ephemeral_containers",
		"Current number of ephemeral containers in pods managed by this kubelet.")
	workingDesc = populationDesc("kubelet_working_pods",
		"Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the pod is desired, orphaned, or runtime only "+
			"(also orphaned), and whether the pod is static.", "config", "lifecycle", "static")
	runningPodsDesc = populationDesc("kubelet_running_pods", "Number of pods that have a running pod sandbox")
	containersDesc  = populationDesc("kubelet_running_containers", "Number of containers currently running", "container_state")
	volumesDesc     = populationDesc("volume_manager_total_volumes", "Number of volumes in Volume Manager", "plugin_name", "state")
	logsDesc        = populationDesc("kubelet_container_log_filesystem_used_bytes", "Bytes used by the container's logs on the filesystem.",
		"uid", "namespace", "pod", "container")
	cgroupDesc    = populationDesc("kubelet_cgroup_version", "cgroup version on the hosts.")
	memoryMinDesc = populationDesc("kubelet_memory_qos_node_memory_min_bytes",
		"Total cgroup v2 memory.min in bytes for guaranteed pods. The kernel never takes this memory back.")
	memoryLowDesc = populationDesc("kubelet_memory_qos_node_memory_low_bytes",
		"Total cgroup v2 memory.low in bytes for burstable pods. The kernel takes this memory back only if there is no other.")
	intentsDesc  = populationDesc("kubelet_imagemanager_ondisk_pullintents", "Number of ImagePullIntents stored on disk.")
	recordsDesc  = populationDesc("kubelet_imagemanager_ondisk_pulledrecords", "Number of ImagePulledRecords stored on disk.")
	lastSeenDesc = populationDesc("kubelet_pleg_last_seen_seconds", "Timestamp in seconds when PLEG was last seen active.")
)

// Describe implements prometheus.Collector.
func (podMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		nodeNameDesc, desiredDesc, activeDesc, mirrorsDesc, ephemeralDesc, workingDesc, runningPodsDesc, containersDesc, volumesDesc,
		lastSeenDesc, logsDesc, cgroupDesc,
		memoryMinDesc, memoryLowDesc, intentsDesc, recordsDesc, pendingDesc, resizingDesc,
	} {
		descs <- desc
	}
}

// tally counts under the values of a metric's labels.
type tally struct {
	desc   *prometheus.Desc
	counts map[[3]string]int
}

func newTally(desc *prometheus.Desc) tally { return tally{desc, map[[3]string]int{}} }

func (t tally) add(n int, labels ...string) {
	var key [3]string
	copy(key[:], labels)
	t.counts[key] += n
}

func (t tally) tell(metrics chan<- prometheus.Metric, labels int) {
	for key, n := range t.counts {
		metrics <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(n), key[:labels]...)
	}
}

// Collect implements prometheus.Collector.
func (p podMetrics) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(nodeNameDesc, 1, p.NodeName)
	gauge(lastSeenDesc, float64(p.Relisted().Unix()))
	version := 1.0
	if cgroups.IsCgroup2UnifiedMode() {
		version = 2
	}
	gauge(cgroupDesc, version)
	guaranteed, burstable := p.Protected()
	gauge(memoryMinDesc, float64(guaranteed))
	gauge(memoryLowDesc, float64(burstable))
	if intents, records, err := p.Pulls(); err == nil {
		gauge(intentsDesc, float64(intents))
		gauge(recordsDesc, float64(records))
	}
	logs := p.Logs()
	for _, pod := range p.Pods.Pods() {
		for container, bytes := range logs[pod.UID] {
			gauge(logsDesc, float64(bytes), string(pod.UID), pod.Namespace, pod.Name, container)
		}
	}
	p.collectPods(metrics, gauge)
	p.collectResizes(metrics, gauge)
	p.collectRunning(metrics, gauge)
	p.collectWorkers(metrics)
	volumes := newTally(volumesDesc)
	desired, actual := p.Volumes.Count()
	for plugin, n := range desired {
		volumes.add(n, plugin, "desired_state_of_world")
	}
	for plugin, n := range actual {
		volumes.add(n, plugin, "actual_state_of_world")
	}
	volumes.tell(metrics, 2)
}

// collectPods counts what the sources have.
func (p podMetrics) collectPods(metrics chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string)) {
	desired, active := newTally(desiredDesc), newTally(activeDesc)
	for _, static := range []string{"", "true"} {
		desired.add(0, static)
		active.add(0, static)
	}
	ephemeral := 0
	for _, pod := range p.Pods.Pods() {
		static := staticLabel(pod)
		desired.add(1, static)
		if p.Active(pod) {
			active.add(1, static)
		}
		ephemeral += len(pod.Spec.EphemeralContainers)
	}
	desired.tell(metrics, 1)
	active.tell(metrics, 1)
	gauge(mirrorsDesc, float64(p.Pods.Mirrors()))
	gauge(ephemeralDesc, float64(ephemeral))
}

func staticLabel(pod *core.Pod) string {
	if podmanager.IsStatic(pod) {
		return "true"
	}
	return ""
}

// collectRunning counts what the runtime has.
func (p podMetrics) collectRunning(metrics chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string)) {
	pods, containers := 0, newTally(containersDesc)
	for _, status := range p.Cache.All() {
		if status.ReadySandbox() != nil {
			pods++
		}
		for _, c := range status.Containers {
			containers.add(1, string(c.State))
		}
	}
	gauge(runningPodsDesc, float64(pods))
	containers.add(0, "running")
	containers.tell(metrics, 1)
}

// collectWorkers counts pod workers by what they are doing.
func (p podMetrics) collectWorkers(metrics chan<- prometheus.Metric) {
	working := newTally(workingDesc)
	for _, lifecycle := range []string{"sync", "terminating", "terminated"} {
		for _, config := range []string{"desired", "orphan"} {
			working.add(0, config, lifecycle, "")
			working.add(0, config, lifecycle, "true")
		}
		working.add(0, "runtime_only", lifecycle, "unknown")
	}
	for uid, state := range p.Workers.States() {
		config, static := "runtime_only", "unknown"
		if state.Pod != nil {
			config, static = "desired", staticLabel(state.Pod)
			if _, desired := p.Pods.ByUID(uid); !desired {
				config = "orphan"
			}
		}
		lifecycle := "sync"
		switch state.Phase {
		case podworker.Terminating:
			lifecycle = "terminating"
		case podworker.Terminated, podworker.Finished:
			lifecycle = "terminated"
		}
		working.add(1, config, lifecycle, static)
	}
	working.tell(metrics, 3)
}
