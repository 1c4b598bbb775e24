package kubelet

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri/critest"
)

// BenchmarkCreateToRunning measures from the pod's creation in the API to the
// patch that says Running, beside the three calls of the runtime that nobody
// can do without, in turns.
func BenchmarkCreateToRunning(b *testing.B) {
	bed := newBed(b)
	var pods, floor []time.Duration
	for i := 0; b.Loop(); i++ {
		floor = append(floor, bed.raw(b, i))
		name := fmt.Sprintf("bench-%d", i)
		start := time.Now()
		bed.api.add(shellPod(name, forever))
		bed.waitPhase(name, corev1.PodRunning)
		pods = append(pods, time.Since(start))
		bed.delete(name)
		bed.api.wait("the end of "+name, func() bool { return bed.api.pod(name) == nil })
	}
	median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2].Microseconds()) / 1000 }
	b.ReportMetric(median(pods), "ms/pod-p50")
	b.ReportMetric(median(floor), "ms/raw-p50")
	b.ReportMetric(median(pods)/median(floor), "ratio")
}

func (b *bed) raw(t testing.TB, i int) time.Duration {
	ctx, client := context.Background(), b.containerd.Client()
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("raw-", i), Namespace: "raw", Uid: fmt.Sprint("raw-", i)},
		LogDirectory: t.TempDir(),
		DnsConfig:    &runtimeapi.DNSConfig{},
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: b.config.CgroupRoot},
	}
	container := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: critest.BusyboxImage},
		Command: []string{"/bin/sh", "-c", "trap 'exit 0' TERM; " + forever}, LogPath: "0.log",
		Linux: &runtimeapi.LinuxContainerConfig{},
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	sandboxID, err := client.RunPodSandbox(ctx, sandbox, "")
	must(err)
	id, err := client.CreateContainer(ctx, sandboxID, container, sandbox)
	must(err)
	must(client.StartContainer(ctx, id))
	took := time.Since(start)
	must(client.StopPodSandbox(ctx, sandboxID))
	must(client.RemovePodSandbox(ctx, sandboxID))
	return took
}
