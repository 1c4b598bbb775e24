package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cgroup"
	machine "kctl/kubelet/internal/node"
	"kctl/kubelet/internal/server/auth"
)

// silent never answers what it is asked for statistics.
type silent struct{ *oneNode }

func (silent) ListContainerStats(ctx context.Context, _ *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) ListPodSandboxStats(ctx context.Context, _ *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) SandboxImage(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func (silent) ListPodSandbox(ctx context.Context, _ *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Monitors, which wait for ten seconds, get what control groups have while the runtime measures nothing.
func TestStatsOfASilentRuntime(t *testing.T) {
	for path, want := range map[string][]string{
		"/stats/summary": {
			`"containers":[{"name":"c","startTime":"2023-11-14T22:13:20Z","cpu":{`, `"usageCoreNanoSeconds":3000000000`,
			`"availableBytes":40,"usageBytes":70,"workingSetBytes":60`,
			`"process_stats":{"process_count":5}`, `"usageCoreNanoSeconds":1500000000`,
		},
		"/stats/summary?only_cpu_and_memory=true": {`"containers":[{"name":"c",`, `"usageCoreNanoSeconds":1500000000`},
		"/metrics/resource": {`container_cpu_usage_seconds_total{container="c",namespace="ns",pod="p"} 3 `,
			`pod_memory_working_set_bytes{namespace="ns",pod="p"} 60 `, "node_cpu_usage_seconds_total 1.5 "},
		"/metrics/cadvisor": {`container_cpu_usage_seconds_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",cpu="total"} 3.5 `, "machine_scrape_error 0\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := onlyNode(t)
			s := newServer(t, n, auth.Authentication{Anonymous: true})
			s.Runtime = silent{n}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began, w := time.Now(), httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			if took := time.Since(began); w.Code != http.StatusOK || took >= 10*time.Second {
				t.Errorf("%s: %d after %s: %.200s", path, w.Code, took, w.Body)
			}
			for _, part := range want {
				if !strings.Contains(w.Body.String(), part) {
					t.Errorf("%s: no %s in\n%s", path, part, w.Body)
				}
			}
			s.Stats.Groups = nil
			w = httptest.NewRecorder()
			if s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)); w.Code != http.StatusInternalServerError {
				t.Errorf("%s without control groups: %d", path, w.Code)
			}
		})
	}
}

// Meanwhile they get the networks and sandboxes that the kernel measures, the sandboxes' images as they are
// known, the size of what containers wrote as it was, and rates between the measurements of groups. The log
// says so once.
func TestWhatIsKnownOfASilentRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := onlyNode(t)
		s := newServer(t, n, auth.Authentication{Anonymous: true})
		core, lines := observer.New(zap.InfoLevel)
		s.Logger = zap.New(core)
		s.Stats.Interfaces = func(_ types.UID, sandbox string) []machine.Interface {
			return []machine.Interface{{Name: "eth0", RxBytes: uint64(len(sandbox))}}
		}
		cpu, groups := uint64(0), s.Stats.Groups
		s.Stats.Groups = func(uid types.UID, id string) (cgroup.Usage, bool) {
			usage, known := groups(uid, id)
			usage.CPU = cpu
			return usage, known
		}
		ask := func(path string, want ...string) string {
			t.Helper()
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			for _, part := range want {
				if !strings.Contains(w.Body.String(), part) {
					t.Errorf("%s: no %s in\n%s", path, part, w.Body)
				}
			}
			return w.Body.String()
		}
		wrote := &runtimeapi.FilesystemUsage{Timestamp: 1e9, UsedBytes: &runtimeapi.UInt64Value{Value: 4321}}
		s.Runtime = writing{n, wrote}
		ask("/metrics/cadvisor", `image="pause-of-sandbox-1"`)
		s.Runtime = silent{n}
		for range 2 {
			ask("/metrics/cadvisor",
				`container_network_receive_bytes_total{container="",id="sandbox-1",image="pause-of-sandbox-1",name="sandbox-1",namespace="ns",pod="p",interface="eth0"} 9 `,
				`container_fs_usage_bytes{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",device=""} 4321 1000`)
		}
		cpu += 5e9
		time.Sleep(5 * time.Second) // of the test's own clock; the runtime takes five more
		ask("/stats/summary", `"usageNanoCores":500000000`, `"network":{"time":`, `"name":"eth0","rxBytes":9`, `"rootfs":{"time":"1970-01-01T00:00:01Z"`,
			`"usedBytes":4321`,
			`"swapAvailableBytes":0,"swapUsageBytes":0`)
		ask("/metrics/resource", `container_swap_limit_bytes{container="c",namespace="ns",pod="p"} 0 `)
		s.Runtime = n
		ask("/stats/summary")
		ask("/stats/summary")
		if all := lines.All(); len(all) != 2 || all[0].Level != zap.WarnLevel || all[1].Level != zap.InfoLevel {
			t.Errorf("the log says %+v", all)
		}
		time.Sleep(time.Hour)
		s.Runtime = silent{n}
		_, container, _ := strings.Cut(ask("/stats/summary"), `"containers":[`)
		if of, _, _ := strings.Cut(container, `"memory"`); !strings.Contains(of, `"usageCoreNanoSeconds":5000000000`) || strings.Contains(of, "usageNanoCores") {
			t.Errorf("a rate since the silence before: %s", of)
		}
	})
}

// writing has a container that wrote something.
type writing struct {
	*oneNode
	layer *runtimeapi.FilesystemUsage
}

func (w writing) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	all, err := w.oneNode.ListContainerStats(ctx, filter)
	all[1].WritableLayer = w.layer
	return all, err
}

// Runtimes that report no swap leave it to the groups.
func TestSwapThatTheRuntimeDoesNotReport(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Anonymous: true})
	s.Runtime = swapless{n}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics/resource", nil))
	for _, line := range []string{`container_swap_usage_bytes{container="c",namespace="ns",pod="p"} 0 `,
		`container_swap_limit_bytes{container="c",namespace="ns",pod="p"} 0 `, `pod_swap_usage_bytes{namespace="ns",pod="p"} 0 `} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("no %s in\n%s", line, w.Body)
		}
	}
}

type swapless struct{ *oneNode }

func (s swapless) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	all, err := s.oneNode.ListContainerStats(ctx, filter)
	for _, one := range all {
		one.Swap = nil
	}
	return all, err
}
