package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/server/auth"
)

// liar measures nonsense, besides what the node has.
type liar struct{ *oneNode }

var oddNames = []string{"", "c", "c", "..", "a/b", "\x1b[2J", `quo"te\`, "new\nline", "\u2028", strings.Repeat("n", 1<<20)}

var oddNumbers = []*runtimeapi.UInt64Value{nil, {}, {Value: 1}, {Value: math.MaxInt64}, {Value: math.MaxUint64}}

func (l liar) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	all, err := l.oneNode.ListContainerStats(ctx, filter)
	all = append(all, &runtimeapi.ContainerStats{}, all[1])
	for i, odd := range oddNames {
		for j, number := range oddNumbers {
			labels := l.labels()
			labels[[]string{kubelettypes.KubernetesPodUIDLabel, kubelettypes.KubernetesPodNameLabel, kubelettypes.KubernetesPodNamespaceLabel,
				kubelettypes.KubernetesContainerNameLabel}[(i+j)%4]] = odd
			when := []int64{0, math.MinInt64, math.MaxInt64}[j%3]
			all = append(all, &runtimeapi.ContainerStats{
				Attributes:    &runtimeapi.ContainerAttributes{Id: oddNames[len(oddNames)-1-i], Labels: labels},
				Cpu:           &runtimeapi.CpuUsage{Timestamp: when, UsageCoreNanoSeconds: number, UsageNanoCores: number},
				Memory:        &runtimeapi.MemoryUsage{Timestamp: when, WorkingSetBytes: number, UsageBytes: number, AvailableBytes: number},
				Swap:          &runtimeapi.SwapUsage{Timestamp: when, SwapUsageBytes: number, SwapAvailableBytes: number},
				WritableLayer: &runtimeapi.FilesystemUsage{Timestamp: when, UsedBytes: number, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: odd}},
			})
		}
	}
	return all, err
}

func (l liar) ListPodSandbox(context.Context, *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return []*runtimeapi.PodSandbox{{Id: "box-1"}, {Id: "box-1"}, {}}, nil
}

func (l liar) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	all, err := l.oneNode.ListPodSandboxStats(ctx, filter)
	all = append(all, &runtimeapi.PodSandboxStats{}, all[0])
	for _, odd := range oddNames {
		of := &runtimeapi.NetworkUsage{DefaultInterface: &runtimeapi.NetworkInterfaceUsage{Name: odd, RxBytes: oddNumbers[4]}}
		for _, name := range oddNames {
			of.Interfaces = append(of.Interfaces, &runtimeapi.NetworkInterfaceUsage{Name: name, TxBytes: oddNumbers[2]})
		}
		all = append(all, &runtimeapi.PodSandboxStats{
			Attributes: &runtimeapi.PodSandboxAttributes{Id: odd, Metadata: &runtimeapi.PodSandboxMetadata{Uid: "uid-1", Namespace: odd, Name: odd}},
			Linux:      &runtimeapi.LinuxPodSandboxStats{Network: of},
		})
	}
	return all, err
}

func (l liar) SandboxImage(context.Context, string) (string, error) { return oddNames[9], nil }

func (l liar) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: oddNames[9]},
		UsedBytes: oddNumbers[4]}, nil}}, nil
}

// What a runtime measures may be nonsense, and there may be something that no kubelet made:
// everyone who asks gets an answer that can be read, of moderate size, with what is true in it.
func TestStatsOfALyingRuntime(t *testing.T) {
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Anonymous: true})
	s.Runtime = liar{n}
	server := httptest.NewServer(s)
	defer server.Close()
	var group errgroup.Group
	for range 5 {
		group.Go(func() error {
			code, text := get(t, server, "/stats/summary")
			var summary stats.Summary
			if err := json.Unmarshal([]byte(text), &summary); err != nil || code != http.StatusOK || len(text) > 1<<20 ||
				!strings.Contains(text, `"usageCoreNanoSeconds":2500000000`) {
				return fmt.Errorf("summary of %d bytes: %d, %w", len(text), code, err)
			}
			return nil
		})
		for path, truth := range map[string]string{"/metrics/cadvisor": `container="c",id="/kubepods/poduid-1/id-1"`,
			"/metrics/resource": `container_cpu_usage_seconds_total{container="c",namespace="ns",pod="p"} 2.5 1000`} {
			group.Go(func() error {
				code, text := get(t, server, path)
				if code != http.StatusOK || len(text) > 1<<20 || !strings.Contains(text, truth) {
					return fmt.Errorf("%s: %d, %d bytes: %.4096s", path, code, len(text), text)
				}
				return readable(text)
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// readable says how a monitor would fail to read metrics.
func readable(text string) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
		return err
	}
	told := map[string]bool{}
	for line := range strings.Lines(text) {
		if end := strings.LastIndex(line, "} "); end >= 0 {
			if told[line[:end]] {
				return fmt.Errorf("told twice: %.500s", line)
			}
			told[line[:end]] = true
		}
	}
	return nil
}
