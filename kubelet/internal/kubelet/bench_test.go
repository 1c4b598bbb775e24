package kubelet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri/critest"
)

// BenchmarkCreateToRunning measures the time from the pod's creation in the API
// to the patch that says Running, and in turns with it the three runtime calls
// that nobody can do without.
func BenchmarkCreateToRunning(b *testing.B) {
	bed := newBed(b)
	var pods, floor []time.Duration
	for i := 0; b.Loop(); i++ {
		took, remove := bed.raw(b, i)
		remove()
		floor = append(floor, took)
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

// raw makes the calls, and returns how long they took, and a function that
// undoes them.
func (b *bed) raw(t testing.TB, i int) (took time.Duration, remove func()) {
	ctx, client := context.Background(), b.containerd.Client()
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("raw-", i), Namespace: "raw", Uid: fmt.Sprint("raw-", i)},
		LogDirectory: t.TempDir(),
		DnsConfig:    &runtimeapi.DNSConfig{},
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: b.config.Cgroups.Root},
	}
	container := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
		Image:    &runtimeapi.ImageSpec{Image: critest.BusyboxImage},
		Command:  []string{"/bin/sh", "-c", "trap 'exit 0' TERM; " + forever},
		LogPath:  "0.log",
		Linux:    &runtimeapi.LinuxContainerConfig{},
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
	return time.Since(start), func() {
		must(client.StopPodSandbox(ctx, sandboxID))
		must(client.RemovePodSandbox(ctx, sandboxID))
	}
}

// BenchmarkThirtyAtOnce measures until the last of thirty pods runs, and beside
// it the same runtime calls, as many at a time.
func BenchmarkThirtyAtOnce(b *testing.B) {
	const many = 30
	bed := newBed(b)
	var pods, floor time.Duration
	for i := 0; b.Loop(); i++ {
		var group sync.WaitGroup
		var removes [many]func()
		start := time.Now()
		for n := range many {
			group.Go(func() { _, removes[n] = bed.raw(b, i*many+n) })
		}
		group.Wait()
		floor += time.Since(start)
		for _, remove := range removes {
			group.Go(remove)
		}
		group.Wait()
		name := func(n int) string { return fmt.Sprintf("many-%d-%d", i, n) }
		start = time.Now()
		for n := range many {
			bed.api.add(shellPod(name(n), forever))
		}
		for n := range many {
			bed.waitPhase(name(n), corev1.PodRunning)
		}
		pods += time.Since(start)
		for n := range many {
			bed.delete(name(n))
		}
		for n := range many {
			bed.api.wait("the end of "+name(n), func() bool { return bed.api.pod(name(n)) == nil })
		}
	}
	b.ReportMetric(float64(pods.Milliseconds())/float64(b.N), "ms/last-running")
	b.ReportMetric(float64(floor.Milliseconds())/float64(b.N), "ms/raw-last")
}
