package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/server/auth"
	"kctl/proto/core"
)

// Monitors find pods, and the groups above them, by the labels that cAdvisor gives them.
func TestRowsOfGroups(t *testing.T) {
	n, _ := newNode(t)
	server := httptest.NewServer(newServer(t, n, auth.Authentication{Anonymous: true}))
	defer server.Close()
	_, text := get(t, server, "/metrics/cadvisor")
	const (
		container = `{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"`
		sandbox   = `{container="",id="/kubepods/poduid-1/box-1",image="pause-of-box-1",name="box-1",namespace="ns",pod="p"`
		pod       = `{container="",id="/kubepods/poduid-1",image="",name="",namespace="ns",pod="p"`
		all       = `{container="",id="/kubepods",image="",name="",namespace="",pod=""`
		daemon    = `{container="",id="/system.slice/kubelet.service",image="",name="",namespace="",pod=""`
	)
	for _, line := range []string{
		"container_cpu_usage_seconds_total" + container + `,cpu="total"} 3.5 `,
		"container_cpu_usage_seconds_total" + sandbox + `,cpu="total"} 3.5 `,
		"container_cpu_usage_seconds_total" + pod + `,cpu="total"} 3.5 `,
		"container_cpu_usage_seconds_total" + all + `,cpu="total"} 6.5 `,
		"container_cpu_usage_seconds_total" + daemon + `,cpu="total"} 4 `,
		"container_memory_working_set_bytes" + pod + "} 61 ",
		"container_memory_working_set_bytes" + daemon + "} 8 ",
		"container_memory_rss" + pod + "} 51 ",
		"container_memory_usage_bytes" + pod + "} 71 ",
		"container_memory_failures_total" + container + `,failure_type="pgfault",scope="hierarchy"} 23 `,
		"container_memory_failures_total" + container + `,failure_type="pgmajfault",scope="container"} 24 `,
		"container_start_time_seconds" + container + "} 1.7e+09\n",
		"container_start_time_seconds" + pod + "} 2\n",
		"container_creation_time_seconds" + container + "} 2\n",
		"container_cpu_cfs_burst_periods_total" + container + "} 3 ",
		"container_cpu_cfs_burst_seconds_total" + container + "} 2.5 ",
		"container_cpu_cfs_throttled_seconds_total" + container + "} 1.5 ",
		"container_spec_cpu_period" + container + "} 100000\n",
		"container_spec_memory_reservation_limit_bytes" + container + "} 28\n",
		"container_spec_memory_swap_limit_bytes" + container + "} 29\n",
		"container_memory_total_active_file_bytes" + container + "} 25 ",
		"container_memory_total_inactive_file_bytes" + container + "} 26 ",
		"container_memory_kernel_usage" + container + "} 27 ",
		"container_memory_swap" + container + "} 16 ",
		"container_memory_file_dirty_bytes" + container + "} 30 ",
		"container_memory_file_writeback_bytes" + container + "} 31 ",
		"container_memory_events_max_total" + container + "} 17 ",
		"container_memory_events_high_total" + container + "} 32 ",
		"container_memory_pgscan_total" + container + "} 33 ",
		"container_memory_pgsteal_total" + container + "} 34 ",
		"container_memory_workingset_refault_file_total" + container + "} 35 ",
		"container_memory_workingset_refault_anon_total" + container + "} 36 ",
		"container_threads_max" + container + "} 15 ",
		"container_ulimits_soft" + container + `,ulimit="max_open_files"} `,
		"container_last_seen" + pod + "} ",
		"container_processes" + strings.Replace(all, "/kubepods", "/", 1) + "} 3 7000\n",
	} {
		if !strings.Contains(text, strings.Replace(line, "1.7e+09", "1700000000", 1)) {
			t.Errorf("%s is missing", line)
		}
	}
	if strings.Contains(text, "container_spec_cpu_quota"+all) {
		t.Error("a quota of a group that has none")
	}
	if err := readable(text); err != nil {
		t.Error(err)
	}
	if strings.Contains(text, "container_sockets"+container+"} 0 ") || strings.Contains(text, "container_file_descriptors"+container+"} 0 ") {
		t.Error("this process, which serves HTTP, has no sockets")
	}
	before := n.imagesAsked
	if _, again := get(t, server, "/metrics/cadvisor"); !strings.Contains(again, `image="pause-of-box-1"`) || n.imagesAsked != before || before == 0 {
		t.Errorf("images of sandboxes were asked for %d times, then %d", before, n.imagesAsked)
	}
}

// Where there are no groups of its own, the runtime's measurements are told.
func TestRowsWithoutGroups(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Anonymous: true})
	s.Stats.GroupDetails, s.Stats.ClassGroups, s.Stats.Daemons = nil, nil, nil
	server := httptest.NewServer(s)
	defer server.Close()
	_, text := get(t, server, "/metrics/cadvisor")
	const container = `{container="c",id="id-1",image="img:1",name="id-1",namespace="ns",pod="p"`
	for _, line := range []string{
		"container_cpu_usage_seconds_total" + container + `,cpu="total"} 2.5 1000`,
		"container_last_seen" + container + "} 1 1000",
		"container_memory_working_set_bytes" + container + "} 4096 1000",
		"container_memory_swap" + container + "} 512 1000",
		"container_start_time_seconds" + container + "} 1700000000\n",
		"container_spec_memory_limit_bytes" + container + "} 8192\n",
		"container_spec_cpu_quota" + container + "} 25000\n",
		"container_spec_cpu_shares" + container + "} 256\n",
		`container_network_receive_bytes_total{container="",id="box-1",image="pause-of-box-1",name="box-1",namespace="ns",pod="p",interface="eth0"} 77 1000`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is missing", line)
		}
	}
	if strings.Contains(text, "/kubepods") {
		t.Error("rows of groups that nobody told of")
	}
}

// Without groups, limits are those that the runtime was told of: the pod's where a container has none.
func TestLimitsOfPodsAsAWhole(t *testing.T) {
	limits := func(cpu, memory string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}}
	}
	pod := &core.Pod{Spec: core.PodSpec{Resources: limits("500m", "64Mi"), Containers: []core.Container{{Name: "none"},
		{Name: "own", Resources: *limits("250m", "8Mi")}}}}
	for _, c := range []struct {
		name   string
		period int64
		want   string
	}{
		{"none", 100_000, "50000 100000 67108864 512"}, {"own", 100_000, "25000 100000 8388608 256"},
		{"own", 10_000, "2500 10000 8388608 256"}, // cpuCFSQuotaPeriod: 10ms
		{"own", 0, "  8388608 256"},               // cpuCFSQuota: false
	} {
		f := samples{}
		addLimits(f, pod, c.name, "", c.period)
		var got []string
		for _, metric := range []string{"container_spec_cpu_quota", "container_spec_cpu_period", "container_spec_memory_limit_bytes", "container_spec_cpu_shares"} {
			got = append(got, f[metric][""])
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s is told to have %q over %d, want %q", c.name, text, c.period, c.want)
		}
	}
}

// What has ended is limited no more: sums of limits are of what runs, as with cAdvisor. It still
// takes room on the disk.
func TestRowsOfWhatHasEnded(t *testing.T) {
	n, _ := newNode(t)
	f := samples{}
	newServer(t, n, auth.Authentication{}).addContainer(f, &runtimeapi.ContainerStats{
		Attributes:    &runtimeapi.ContainerAttributes{Id: "id-2", Labels: n.labels()},
		WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: &runtimeapi.UInt64Value{Value: 1}},
	}, map[types.UID]row{})
	for metric := range f {
		if strings.HasPrefix(metric, "container_spec_") {
			t.Errorf("%s: %v", metric, f[metric])
		}
	}
	if len(f["container_fs_usage_bytes"]) != 1 {
		t.Errorf("its room on the disk is not told: %v", f)
	}
}
