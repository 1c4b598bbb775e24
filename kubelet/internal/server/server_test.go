package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	machine "kctl/kubelet/internal/node"
	"kctl/kubelet/internal/server/auth"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// Every route, and every unknown path, is closed to clients without
// credentials.
func TestNothingIsOpen(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Certificates: &pki.Authorities{}})
	routes := s.engine.Routes()
	if len(routes) < 20 {
		t.Fatalf("only %d routes", len(routes))
	}
	paths := map[string]string{
		"/none": "GET", "/": "GET", "/pods/../exec": "POST", "/logs": "GET", "/stats/summary/": "GET", "/exec/ns/p/c/": "POST", "/debug/pprof": "GET",
		"/run/ns/p/c/": "POST",
	}
	for _, r := range routes {
		paths[strings.NewReplacer(":namespace", "ns", ":pod", "p", ":container", "c", ":last", "c", ":uid", "uid-1", ":check", "ping", "*file", "0.log", "*profile",
			"heap").Replace(r.Path)] = r.Method
	}
	for path, method := range paths {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "Unauthorized") {
			t.Errorf("%s %s: %d %q", method, path, w.Code, w.Body)
		}
	}
}

// The read-only port has no authentication, and nothing that leads into pods.
func TestReadOnly(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Certificates: &pki.Authorities{}})
	server := httptest.NewServer(s.ReadOnly())
	defer server.Close()
	for _, path := range []string{"/pods", "/pods/", "/stats/summary", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes", "/healthz", "/healthz/ping",
		"/metrics/slis"} {
		if code, text := get(t, server, path); code != http.StatusOK {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
	if code, text := get(t, server, "/metrics"); code != http.StatusOK || !strings.Contains(text,
		`kubelet_http_requests_total{long_running="false",method="GET",path="pods",server_type="readonly"} 2`) {
		t.Errorf("%d %s", code, text)
	}
	for _, path := range []string{"/configz", "/statusz", "/flagz", "/checkpoint/ns/p/c", "/debug/flags/v"} {
		if code, text := get(t, server, path); code != http.StatusNotFound {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
	for _, path := range []string{"/exec/ns/p/c", "/attach/ns/p/c", "/run/ns/p/c", "/portForward/ns/p", "/containerLogs/ns/p/c", "/runningpods/", "/logs/",
		"/debug/pprof/heap"} {
		if code, text := do(t, server, http.MethodPost, path); code != http.StatusMethodNotAllowed || !strings.Contains(text, "disabled") {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
}

// The kernel's counters for pods' networks take precedence over the runtime's,
// which have less, or nothing.
func TestNetworksOfPods(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Anonymous: true})
	of := map[string][]machine.Interface{"sandbox-1": {{Name: "eth0", RxBytes: 1, RxPackets: 2, RxErrors: 3, RxDropped: 4, TxBytes: 5, TxPackets: 6, TxErrors: 7,
		TxDropped: 8}}}
	s.Stats.Interfaces = func(_ types.UID, sandbox string) []machine.Interface { return of[sandbox] }
	server := httptest.NewServer(s)
	defer server.Close()
	_, metrics := get(t, server, "/metrics/cadvisor")
	for figure, want := range map[string]string{
		"receive_bytes": "1", "receive_packets": "2", "receive_errors": "3", "receive_packets_dropped": "4",
		"transmit_bytes": "5", "transmit_packets": "6", "transmit_errors": "7", "transmit_packets_dropped": "8",
	} {
		line := "container_network_" + figure +
			`_total{container="",id="sandbox-1",image="pause-of-sandbox-1",name="sandbox-1",namespace="ns",pod="p",interface="eth0"} ` + want + " "
		if !strings.Contains(metrics, line) {
			t.Errorf("%s is not among\n%s", line, metrics)
		}
	}
	if !strings.Contains(metrics, `container_network_receive_bytes_total{container="",id="/kubepods/poduid-1/box-1"`) {
		t.Error("the figures from the runtime alone are missing")
	}
	of["box-1"] = []machine.Interface{} // it has no interface of its own
	if _, summary := get(t, server, "/stats/summary"); !strings.Contains(summary,
		`"name":"eth0","rxBytes":1,"rxErrors":3,"txBytes":5,"txErrors":7,"interfaces":[{`) {
		t.Error(summary)
	}
}

func TestAnswers(t *testing.T) {
	n, server := newNode(t)
	for _, c := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"GET", "/containerLogs/ns/p/c", 200, "one\ntwo\n"},
		{"GET", "/containerLogs/ns/p/c?tailLines=1&timestamps=true", 200, "2026-11-21T09:00:01.000000000Z two\n"},
		{"GET", "/containerLogs/ns/p/c?limitBytes=2", 200, "on"},
		{"GET", "/containerLogs/ns/p/c?sinceTime=2026-11-21T09:00:01Z", 200, "two\n"},
		{"GET", "/containerLogs/ns/p/c?sinceSeconds=1", 200, ""},
		{"GET", "/containerLogs/ns/p/c?stream=Stderr", 200, "two\n"},
		{"GET", "/containerLogs/ns/p/c?tailLines=-1", 422, "tailLines: must be greater than or equal to 0"},
		{"GET", "/containerLogs/ns/p/c?tailLines=x", 400, `tailLines: "x" is not a number`},
		{"GET", "/containerLogs/ns/p/c?tailLines=", 400, `tailLines: "" is not a number`},
		{"GET", "/containerLogs/ns/p/c?tail=1", 200, "two\n"},
		{"GET", "/containerLogs/ns/p/c?tail=all&tailLines=1", 200, "one\ntwo\n"},
		{"GET", "/containerLogs/ns/p/c?tail=some", 400, `tailLines: "some" is not a number`},
		{"GET", "/containerLogs/ns/p/c?tail=1&timestamps", 200, "2026-11-21T09:00:01.000000000Z two\n"},
		{"GET", "/containerLogs/ns/p/c?tail=1&timestamps=False", 200, "two\n"},
		{"GET", "/containerLogs/ns/p/c?limitBytes=0", 422, "limitBytes"},
		{"GET", "/containerLogs/ns/p/c?sinceSeconds=1&sinceTime=2026-11-21T09:00:01Z", 422, "at most one"},
		{"GET", "/containerLogs/ns/p/c?sinceTime=yesterday", 400, "sinceTime"},
		{"GET", "/containerLogs/ns/p/c?stream=Both", 422, "stream"},
		{"GET", "/containerLogs/ns/p/c?previous=true", 400, `previous terminated container "c" in pod "p" not found`},
		{"GET", "/containerLogs/ns/p/none", 404, `container "none" not found in pod "p"`},
		{"GET", "/containerLogs/ns/none/c", 404, `pod "none" does not exist`},
		{"POST", "/containerLogs/ns/p/c", 405, ""},
		{"GET", "/pods", 200, `"name":"p"`},
		{"GET", "/runningpods/", 200, `"image":"img"`},
		{"GET", "/containerLogs/ns/p/c/?tailLines=1", 200, "two\n"},
		{"GET", "/logs", 200, "0.log"},
		{"GET", "//elsewhere.test/", 404, ""},
		{"GET", "/", 404, ""},
		{"POST", "/configz", 405, ""},
		{"GET", "/configz", 200, `{"kubeletconfig":{"kind":"KubeletConfiguration"}}`},
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/metrics", 200, "go_goroutines"},
		{"GET", "/metrics/resource", 200, `container_cpu_usage_seconds_total{container="c",namespace="ns",pod="p"} 2.5 1000`},
		{"GET", "/metrics/resource", 200, `pod_memory_working_set_bytes{namespace="ns",pod="p"} 60 `},
		{"GET", "/metrics/resource", 200, `pod_cpu_usage_seconds_total{namespace="ns",pod="p"} 3 `},
		{"GET", "/metrics/resource", 200, "node_cpu_usage_seconds_total 1.5 7000\n"},
		{"GET", "/metrics/resource", 200, "resource_scrape_error 0\n"},
		{"GET", "/metrics/resource", 200, `container_swap_limit_bytes{container="c",namespace="ns",pod="p"} 600 1000`},
		{"GET", "/metrics/probes", 200, "of_probes 0"},
		{"GET", "/metrics/cadvisor", 200,
			`container_cpu_usage_seconds_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",cpu="total"} 3.5 `},
		{"GET", "/metrics/cadvisor", 200,
			`container_memory_working_set_bytes{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 61 `},
		{"GET", "/metrics/cadvisor", 200,
			`container_spec_memory_limit_bytes{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 8192` + "\n"},
		{"GET", "/metrics/cadvisor", 200,
			`container_spec_cpu_quota{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 25000` + "\n"},
		{"GET", "/metrics/cadvisor", 200,
			`container_network_receive_bytes_total{container="",id="/kubepods/poduid-1/box-1",image="pause-of-box-1",name="box-1",namespace="ns",pod="p",interface="eth0"} 77 1000`},
		{"GET", "/metrics/cadvisor", 200, `container_cpu_usage_seconds_total{container="",id="/",image="",name="",namespace="",pod="",cpu="total"} 1.5 7000`},
		{"GET", "/metrics/cadvisor", 200, `machine_memory_bytes{boot_id="boot",machine_id="machine",system_uuid="system"} 1024` + "\n"},
		{"GET", "/metrics/cadvisor", 200, `machine_swap_bytes{boot_id="boot",machine_id="machine",system_uuid="system"} 6` + "\n"},
		{"GET", "/metrics/cadvisor", 200, `machine_cpu_physical_cores{boot_id="boot",machine_id="machine",system_uuid="system"} `},
		{"GET", "/metrics/cadvisor", 200, "machine_scrape_error 0\n"},
		{"GET", "/metrics/cadvisor", 200,
			`container_cpu_cfs_throttled_periods_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 2 `},
		{"GET", "/metrics/cadvisor", 200,
			`container_cpu_user_seconds_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 4 `},
		{"GET", "/metrics/cadvisor", 200, `container_threads{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 14 `},
		{"GET", "/metrics", 200, `kubelet_http_requests_total{long_running="false",method="GET",path="metrics",server_type="readwrite"}`},
		{"GET", "/metrics", 200, `kubelet_http_requests_total{long_running="false",method="GET",path="metrics/cadvisor",server_type="readwrite"}`},
		{"GET", "/stats/summary", 200, `"workingSetBytes":4096`},
		{"GET", "/stats/summary", 200, `"availableBytes":40,"usageBytes":70,"workingSetBytes":60,"rssBytes":50,"pageFaults":0,"majorPageFaults":0,"psi":{`},
		{"GET", "/stats/summary", 200, `"usageBytes":9,"workingSetBytes":8,"rssBytes":7,"pageFaults":6,"majorPageFaults":5}},{"name":"pods",`},
		{"GET", "/stats/summary", 200, `"pods":[{"podRef":{"name":"p",`},
		{"GET", "/stats/summary", 200,
			`"logs":{"time":"1970-01-01T00:00:07Z","availableBytes":50,"capacityBytes":100,"usedBytes":8,"inodesFree":0,"inodes":0,"inodesUsed":1}`},
		{"GET", "/stats/summary?only_cpu_and_memory=true", 200,
			`"pods":[{"podRef":{"name":"p","namespace":"ns","uid":"uid-1"},"startTime":null,"containers":[{"name":"c","startTime":"2023-11-14T22:13:20Z","cpu":{`},
		{"GET", "/stats/summary", 200, `}}}],"startTime":"1970-01-01T00:00:01Z","cpu":{"time":"1970-01-01T00:00:07Z","usageCoreNanoSeconds":1500000000,`},
		{"GET", "/metrics/cadvisor", 200, `container_processes{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 1 `},
		{"GET", "/metrics/cadvisor", 200, `container_memory_failcnt{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 17`},
		{"GET", "/metrics/cadvisor", 200,
			`container_oom_events_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 18`},
		{"GET", "/metrics/cadvisor", 200,
			`container_fs_reads_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",device="/dev/vda"} 19`},
		{"GET", "/metrics/cadvisor", 200,
			`container_fs_reads_bytes_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",device="/dev/vda"} 20`},
		{"GET", "/metrics/cadvisor", 200,
			`container_fs_writes_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",device="/dev/vda"} 21`},
		{"GET", "/metrics/cadvisor", 200,
			`container_fs_writes_bytes_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",device="/dev/vda"} 22`},
		{"GET", "/metrics/cadvisor", 200,
			`container_blkio_device_usage_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",device="/dev/vda",major="254",minor="0",operation="Write"} 22`},
		{"GET", "/metrics/cadvisor", 200,
			`container_spec_cpu_shares{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 102`},
		{"GET", "/metrics/cadvisor", 200,
			`container_pressure_cpu_waiting_seconds_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 4`},
		{"GET", "/metrics/cadvisor", 200,
			`container_pressure_memory_stalled_seconds_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 5`},
		{"GET", "/metrics/cadvisor", 200, `container_fs_limit_bytes{container="",id="/",image="",name="",namespace="",pod="",device="/dev/sda1"} 100 7000`},
		{"GET", "/metrics/cadvisor", 200, `container_fs_sector_reads_total{container="",id="/",image="",name="",namespace="",pod="",device="/dev/sda1"} 37 7000`},
		{"GET", "/metrics/cadvisor", 200, `container_fs_write_seconds_total{container="",id="/",image="",name="",namespace="",pod="",device="/dev/sda1"} 1.5 7000`},
		{"GET", "/metrics/cadvisor", 200, `container_health_state{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} -1`},
		{"GET", "/metrics/cadvisor", 200,
			`container_pressure_io_waiting_seconds_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p"} 6`},
		{"GET", "/metrics/cadvisor", 200, `container_pressure_io_waiting_seconds_total{container="",id="/",image="",name="",namespace="",pod=""} 6 7000`},
		{"GET", "/stats/summary", 200, `"node":{"nodeName":"node-1","systemContainers":[{"name":"kubelet","startTime":"1970-01-01T00:00:01Z","cpu":{`},
		{"GET", "/stats/summary", 200,
			`"usageCoreNanoSeconds":1500000000,"psi":{"full":{"total":0,"avg10":0,"avg60":0,"avg300":0},"some":{"total":4000000,"avg10":1.5,"avg60":2,"avg300":3}}}`},
		{"GET", "/stats/summary", 200,
			`"usageCoreNanoSeconds":2500000000,"psi":{"full":{"total":0,"avg10":0,"avg60":0,"avg300":0},"some":{"total":4000000,"avg10":1.5,"avg60":2,"avg300":3}}}`},
		{"GET", "/stats/summary?only_cpu_and_memory=true", 200,
			`"io":{"time":"1970-01-01T00:00:01Z","psi":{"full":{"total":0,"avg10":0,"avg60":0,"avg300":0},"some":{"total":6000000,"avg10":0,"avg60":0,"avg300":0}}}`},
		{"GET", "/stats/summary", 200, `"network":{"time":"1970-01-01T00:00:07Z","name":"eth0","rxBytes":11,`},
		{"GET", "/stats/summary", 200, `"runtime":{"imageFs":{"time":"1970-01-01T00:00:01Z","availableBytes":`},
		{"GET", "/stats/summary", 200, `"rlimit":{"time":"1970-01-01T00:00:07Z","maxpid":4,"curproc":3}`},
		{"GET", "/stats/summary", 200, `"swap":{"time":"1970-01-01T00:00:07Z","swapAvailableBytes":6,"swapUsageBytes":3}`},
		{"GET", "/stats/summary", 200, `"containers":[{"name":"c","startTime":"2023-11-14T22:13:20Z"`},
		{"GET", "/stats/summary", 200, `"network":{"time":"1970-01-01T00:00:01Z","name":"eth0","rxBytes":77,"interfaces":[{"name":"eth0","rxBytes":77}]}`},
		{"GET", "/stats/summary", 200,
			`"volume":[{"time":"1970-01-01T00:00:07Z","availableBytes":0,"capacityBytes":0,"usedBytes":20,"inodesFree":0,"inodes":0,"inodesUsed":3,"name":"scratch","pvcRef":{"name":"data","namespace":"ns"}}],"ephemeral-storage":{"time":"1970-01-01T00:00:07Z","availableBytes":50,"capacityBytes":100,"usedBytes":21,"inodesFree":0,"inodes":0,"inodesUsed":2},"process_stats":{"process_count":5}`},
		{"GET", "/metrics/resource", 200, `container_start_time_seconds{container="c",namespace="ns",pod="p"} 1700000000` + "\n"},
		{"GET", "/metrics/resource", 200, `pod_swap_usage_bytes{namespace="ns",pod="p"} 512 1000`},
		{"GET", "/metrics/resource", 200, "node_swap_usage_bytes 3 7000\n"},
		{"GET", "/metrics/slis", 200, `kubernetes_healthcheck{name="ping",type="healthz"} 1`},
		{"POST", "/checkpoint/ns/p/c", 500, "checkpointing of ns/p/c failed (rpc error: code = Unimplemented desc = unknown method CheckpointContainer)"},
		{"POST", "/checkpoint/ns/p/c?timeout=5", 200, `{"items":["` + n.checkpoints() + `/checkpoint-p_ns-c-`},
		{"POST", "/checkpoint/ns/p/c?timeout=x", 400, "cannot parse value of timeout parameter"},
		{"POST", "/checkpoint/ns/p/none", 404, `container "none" not found in pod "p"`},
		{"POST", "/run/ns/p/c?cmd=echo&cmd=hi", 200, "echo hi"},
		{"POST", "/run/ns/p/c?cmd=false", 500, "exited with code 1: no"},
		{"POST", "/run/ns/p/c", 400, "cmd"},
		{"POST", "/exec/ns/p/c?command=sh", 400, "at least 1 of stdin, stdout, stderr"},
		{"POST", "/exec/ns/none/c?command=sh", 400, "at least 1 of stdin, stdout, stderr"},
		{"POST", "/attach/ns/none/c", 400, "at least 1 of stdin, stdout, stderr"},
		{"POST", "/portForward/ns/none?port=x", 400, `invalid port "x"`},
		{"POST", "/exec/ns/none/c?command=sh&output=1", 404, `pod "none" does not exist`},
		{"POST", "/exec/ns/p/c?output=1", 400, "command"},
		{"POST", "/exec/ns/p/c?output=1&command=sh", 500, "Upgrade request required"},
		{"POST", "/exec/ns/p/other-uid/c?output=1&command=sh", 404, `pod "p" does not exist`},
		{"POST", "/portForward/ns/p?port=0", 400, `invalid port "0"`},
		{"GET", "/debug/pprof/cmdline", 200, "server.test"},
		{"GET", "/debug/flags", 200, "v\n"},
		{"PUT", "/debug/flags/v", 400, "must be a number"},
		{"GET", "/statusz", 200, "\nkubelet statusz\n"},
		{"GET", "/flagz", 200, "node-name: node-1\n"},
		{"GET", "/logs/", 200, `<a href="0.log">0.log</a>`},
		{"GET", "/logs/0.log", 200, "2026-11-21T09:00:00Z stdout F one\n"},
		{"GET", "/logs/none", 404, ""},
		{"GET", "/logs/../pods", 404, ""},
		{"POST", "/logs/0.log", 405, ""},
		{"GET", "/none", 404, ""},
	} {
		code, body := do(t, server, c.method, c.path)
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, code, body, c.code, c.want)
		}
	}
	if code, body := do(t, server, "POST", "/exec/ns/p/c?output=1&command=sh", "Connection", "Upgrade", "Upgrade", "SPDY/3.1"); code != 500 ||
		!strings.Contains(body, "the runtime refuses") {
		t.Errorf("a runtime that refuses: %d %q", code, body)
	}
	archives, err := filepath.Glob(n.checkpoints() + "/*.tar")
	if err != nil || len(archives) != 1 {
		t.Errorf("archives %q, %v", archives, err)
	} else if text, err := os.ReadFile(archives[0]); err != nil || string(text) != "5s" {
		t.Errorf("%s: %q, %v", archives[0], text, err)
	}
	n.mu.Lock()
	n.running = false
	n.mu.Unlock()
	if code, body := do(t, server, "POST", "/exec/ns/p/c?output=1&command=sh"); code != 500 || !strings.Contains(body, `container not found ("c")`) {
		t.Errorf("exec into what does not run: %d %q", code, body)
	}
	var list corev1.PodList
	if _, body := get(t, server, "/pods"); json.Unmarshal([]byte(body), &list) != nil || list.Kind != "PodList" ||
		len(list.Items[0].Status.ContainerStatuses) != 1 {
		t.Errorf("/pods: %+v", list)
	}
}

// --enable-debugging-handlers=false turns off what leads into pods, and nothing
// that is for monitoring.
func TestDebuggingCanBeOff(t *testing.T) {
	n, _ := newNode(t)
	config := newServer(t, n, auth.Authentication{Anonymous: true}).Config
	config.Debugging, config.Metrics = false, daemon.NewRegistry()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	for _, path := range []string{"/pods", "/stats/summary", "/metrics", "/metrics/cadvisor", "/healthz", "/configz"} {
		if code, body := get(t, server, path); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/runningpods/", "/containerLogs/ns/p/c", "/exec/ns/p/c?command=sh", "/run/ns/p/c", "/attach/ns/p/c", "/portForward/ns/p",
		"/logs/", "/debug/pprof/cmdline"} {
		if code, body := get(t, server, path); code != 405 || body != "Debug endpoints are disabled.\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
}

// CPU usage is measured between two requests, and only the newest container of
// each name counts.
func TestWhatIsMeasured(t *testing.T) {
	var r rates
	ask := func(seconds int64, cpu uint64) *uint64 { return r.since("", time.Unix(seconds, 0), cpu) }
	if first := ask(10, 5e9); first != nil {
		t.Errorf("after the first look: %d", *first)
	}
	if second := ask(20, 8e9); second == nil || *second != 3e8 {
		t.Errorf("3 s in 10: %v", second)
	}
	if other := r.since("pods", time.Unix(20, 0), 9e9); other != nil {
		t.Errorf("of others, after the first look: %d", *other)
	}
	one := func(name string, attempt uint32) *runtimeapi.ContainerStats {
		return &runtimeapi.ContainerStats{Attributes: &runtimeapi.ContainerAttributes{
			Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
			Labels:   map[string]string{kubelettypes.KubernetesPodUIDLabel: "u", kubelettypes.KubernetesContainerNameLabel: name},
		}}
	}
	left := newest([]*runtimeapi.ContainerStats{one("a", 0), one("a", 2), one("b", 1), one("a", 1)})
	if len(left) != 2 || left[0].Attributes.Metadata.Attempt != 2 || left[1].Attributes.Metadata.Name != "b" {
		t.Errorf("left: %v", left)
	}
}
