package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

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

// Monitors, which wait for ten seconds, get what control groups have while the runtime measures nothing.
func TestStatsOfASilentRuntime(t *testing.T) {
	for path, want := range map[string][]string{
		"/stats/summary": {
			`"containers":[{"name":"c","startTime":"2023-11-14T22:13:20Z","cpu":{`, `"usageCoreNanoSeconds":3000000000`, `"availableBytes":40,"usageBytes":70,"workingSetBytes":60`,
			`"process_stats":{"process_count":5}`, `"usageCoreNanoSeconds":1500000000`,
		},
		"/stats/summary?only_cpu_and_memory=true": {`"containers":[{"name":"c",`, `"usageCoreNanoSeconds":1500000000`},
		"/metrics/resource":                       {`container_cpu_usage_seconds_total{container="c",namespace="ns",pod="p"} 3 `, `pod_memory_working_set_bytes{namespace="ns",pod="p"} 60 `, "node_cpu_usage_seconds_total 1.5 "},
		"/metrics/cadvisor":                       {`container_cpu_usage_seconds_total{container="c",id="/kubepods/poduid-1/id-1",image="img:1",name="id-1",namespace="ns",pod="p",cpu="total"} 3.5 `, "machine_scrape_error 0\n"},
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
			s.Groups = nil
			w = httptest.NewRecorder()
			if s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)); w.Code != http.StatusInternalServerError {
				t.Errorf("%s without control groups: %d", path, w.Code)
			}
		})
	}
}
