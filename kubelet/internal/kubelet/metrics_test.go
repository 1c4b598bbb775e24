package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// told are the metrics in a registry, one per line: name{label="value",…}
// value; for histograms, the number of observations.
func told(t *testing.T, from prometheus.Gatherer) []string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			lines = append(lines, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), value))
		}
	}
	return lines
}

// Monitors ask for single checks by their names, which are upstream's.
func TestChecksHaveUpstreamsNames(t *testing.T) {
	paths := new(Kubelet).healthChecks().Paths()
	for _, want := range []string{"/healthz/ping", "/healthz/log", "/healthz/syncloop"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not among %q", want, paths)
		}
	}
}

// Metrics of pods say what happened to them, under the names that dashboards
// and alerts use.
func TestMetricsTellOfPods(t *testing.T) {
	b := newBed(t)
	static := "apiVersion: v1\nkind: Pod\nmetadata: {name: still, namespace: default}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n" +
		"  - {name: main, image: " + shellPod("", "").Spec.Containers[0].Image + ", imagePullPolicy: IfNotPresent, command: [sleep, \"1000\"]}\n"
	if err := os.WriteFile(filepath.Join(b.config.Sources.StaticPodPath, "still.yaml"), []byte(static), 0o600); err != nil {
		t.Fatal(err)
	}
	pod := shellPod("probed", forever)
	pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "disk", MountPath: "/disk"}}
	pod.Spec.InitContainers = []core.Container{*pod.Spec.Containers[0].DeepCopy()}
	pod.Spec.InitContainers[0].Name, pod.Spec.InitContainers[0].Command = "first", []string{"true"}
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
		PeriodSeconds: 1, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 1,
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	b.create(pod)
	refused := shellPod("refused", forever)
	refused.Spec.NodeSelector = map[string]string{"no": "such"}
	b.create(refused)
	broken := shellPod("broken", forever)
	broken.Spec.Containers[0].Command, broken.Spec.RestartPolicy = []string{"/no/such"}, corev1.RestartPolicyNever
	b.create(broken)
	b.waitPhase("refused", corev1.PodFailed)
	b.waitPhase("broken", corev1.PodFailed)
	b.waitPhase("still-node-1", corev1.PodRunning)
	uid := string(b.waitPhase("probed", corev1.PodRunning).UID)

	has := func(from prometheus.Gatherer, want string) {
		t.Helper()
		var all []string
		defer func() {
			if t.Failed() {
				t.Log(strings.Join(all, "\n"))
			}
		}()
		b.eventually(want, func() bool {
			all = told(t, from)
			return slices.ContainsFunc(all, func(line string) bool { return strings.HasPrefix(line, want) })
		})
	}
	for _, want := range []string{
		`kubelet_node_name{node="node-1"} 1`, `kubernetes_feature_enabled{name="EventedPLEG",stage="ALPHA"} 1`,
		`kubernetes_feature_enabled{name="MemoryQoS",stage="BETA"} 1`, `kubernetes_feature_enabled{name="PodsAPI",stage="BETA"} 0`,
		`kubelet_cgroup_version{} `, `kubelet_restarted_pods_total{static=""} 0`, `kubelet_restarted_pods_total{static="true"} 0`,
		`kubelet_imagemanager_ondisk_pullintents{} 0`, `kubelet_imagemanager_ondisk_pulledrecords{} 0`,
		`kubelet_imagemanager_image_mustpull_checks_total{result="credentialPolicyAllowed"} `,
		`kubelet_orphaned_runtime_pods_total{} 0`,
		`kubelet_container_log_filesystem_used_bytes{container="main",namespace="default",pod="probed",uid="` + uid + `"} `,
		`kubelet_image_manager_ensure_image_requests_total{present_locally="true",pull_policy="ifnotpresent",pull_required="false"} `,
		`kubelet_node_startup_duration_seconds{} `,
		`kubelet_desired_pods{static=""} 3`, `kubelet_desired_pods{static="true"} 1`, `kubelet_active_pods{static=""} 1`, `kubelet_mirror_pods{} 1`,
		`kubelet_working_pods{config="desired",lifecycle="sync",static=""} 1`, `kubelet_working_pods{config="desired",lifecycle="sync",static="true"} 1`,
		`kubelet_working_pods{config="orphan",lifecycle="sync",static=""} 0`,
		`kubelet_working_pods{config="runtime_only",lifecycle="terminated",static="unknown"} 0`,
		`kubelet_running_pods{} 2`, `kubelet_running_containers{container_state="running"} 2`,
		`kubelet_started_pods_total{} 3`, `kubelet_started_containers_total{container_type="init_container"} 1`,
		`kubelet_started_containers_errors_total{code="RunContainerError",container_type="container"} `,
		`kubelet_terminated_containers_total{container_type="init_container",exit_code="0",reason="Completed"} 1`,
		`kubelet_admission_rejections_total{reason="NodeAffinity"} 1`,
		`kubelet_pod_start_duration_seconds{} 2`, `kubelet_pod_start_total_duration_seconds{} 1`, `kubelet_pod_start_sli_duration_seconds{} 1`,
		`kubelet_run_podsandbox_duration_seconds{runtime_handler=""} 3`, `kubelet_containers_per_pod_count{} 3`, `kubelet_pod_status_sync_duration_seconds{} `,
		`kubelet_cgroup_manager_duration_seconds{operation_type="create"} `,
		`storage_operation_duration_seconds{migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io/empty-dir"} 1`,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"} 1`,
	} {
		has(b.kubelet.registry, want)
	}
	probes := b.kubelet.metrics.Probes.Registry
	has(probes, `prober_probe_total{container="main",namespace="default",pod="probed",pod_uid="`+uid+`",probe_type="Readiness",result="successful"} `)
	has(probes, `prober_probe_duration_seconds{container="main",namespace="default",pod="probed",probe_type="Readiness"} `)

	b.resize("probed", "200m")
	has(b.kubelet.registry, `kubelet_container_requested_resizes_total{operation="increase",requirement="requests",resource="cpu"} 1`)
	has(b.kubelet.registry, `kubelet_pod_resize_duration_milliseconds{success="true"} 1`)
	b.resize("probed", "1000")
	has(b.kubelet.registry, `kubelet_pod_pending_resizes{priority_bucket="normal",reason="infeasible"} 1`)
	has(b.kubelet.registry, `kubelet_pod_in_progress_resizes{} 0`)

	b.delete("probed")
	b.api.wait("probed to be gone", func() bool { return b.api.pod("probed") == nil })
	left := slices.DeleteFunc(told(t, probes), func(line string) bool { return strings.HasPrefix(line, "process_start_time_seconds{} ") })
	if len(left) > 0 {
		t.Errorf("of a pod that is gone there is still %q", left)
	}
	has(b.kubelet.registry, `kubelet_desired_pods{static=""} 2`)
	has(b.kubelet.registry,
		`storage_operation_duration_seconds{migrated="false",operation_name="volume_unmount",status="success",volume_plugin="kubernetes.io/empty-dir"} 1`)
}
