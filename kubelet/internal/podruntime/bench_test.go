package podruntime

import (
	"context"
	"fmt"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// BenchmarkSyncPod measures the time to a running container, in turns with the
// three raw runtime calls that a pod can't do without, and prints the ratio.
func BenchmarkSyncPod(b *testing.B) {
	bed := newBed(b)
	var raw, ours time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		id := bed.rawPod(b, n, critest.BusyboxImage)
		raw += time.Since(began)
		bed.discard(b, &runtimestate.RunningPod{Sandboxes: []*runtimestate.RunningContainer{{ID: bed.ContainerID(id), State: runtimestate.StateRunning}}})

		pod := newPod(fmt.Sprintf("bench-%d", n), shell("main", forever))
		began = time.Now()
		result := bed.SyncPod(b.Context(), pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{})
		ours += time.Since(began)
		if result.Err != nil {
			b.Fatal(result.Err)
		}
		bed.discard(b, result.Status.RunningPod(bed.Name()))
	}
	b.ReportMetric(float64(raw.Milliseconds())/float64(b.N), "raw-ms/pod")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ours-ms/pod")
	b.ReportMetric(float64(ours)/float64(raw), "ratio")
}

// BenchmarkKillPod is the same for ending the containers.
func BenchmarkKillPod(b *testing.B) {
	bed := newBed(b)
	var raw, ours time.Duration
	start := func(n int) (*core.Pod, *runtimestate.RunningPod) {
		pod := newPod(fmt.Sprintf("bench-%d", n), shell("main", forever))
		result := bed.SyncPod(b.Context(), pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{})
		if result.Err != nil {
			b.Fatal(result.Err)
		}
		return pod, result.Status.RunningPod(bed.Name())
	}
	client := bed.containerd.Client()
	for n := 0; b.Loop(); n++ {
		_, running := start(2 * n)
		began := time.Now()
		if err := client.StopContainer(b.Context(), running.Containers[0].ID.ID, time.Second); err != nil {
			b.Fatal(err)
		}
		if err := client.StopPodSandbox(b.Context(), running.Sandboxes[0].ID.ID); err != nil {
			b.Fatal(err)
		}
		raw += time.Since(began)
		bed.discard(b, running)

		pod, running := start(2*n + 1)
		began = time.Now()
		if err := bed.KillPod(b.Context(), pod, running, nil); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(began)
		bed.discard(b, running)
	}
	b.ReportMetric(float64(raw.Milliseconds())/float64(b.N), "raw-ms/pod")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ours-ms/pod")
	b.ReportMetric(float64(ours)/float64(raw), "ratio")
}

// BenchmarkSyncPodWithPull is BenchmarkSyncPod with an image that has to be
// pulled. The raw calls are made one after the other, as upstream makes them.
func BenchmarkSyncPodWithPull(b *testing.B) {
	bed := newBed(b)
	registry := critest.NewRegistry(b)
	client := bed.containerd.Client()
	push := func(n int) string {
		return registry.Push(b, fmt.Sprintf("bench:%d", n), critest.Image{Files: map[string]string{"n": fmt.Sprint(n)}})
	}
	var raw, ours time.Duration
	for n := 0; b.Loop(); n++ {
		image := push(2 * n)
		began := time.Now()
		if _, err := client.PullImage(b.Context(), &runtimeapi.ImageSpec{Image: image}, nil, nil); err != nil {
			b.Fatal(err)
		}
		id := bed.rawPod(b, n, image)
		raw += time.Since(began)
		bed.discard(b, &runtimestate.RunningPod{Sandboxes: []*runtimestate.RunningContainer{{ID: bed.ContainerID(id), State: runtimestate.StateRunning}}})

		pod := newPod(fmt.Sprintf("bench-%d", n), shell("main", forever))
		pod.Spec.Containers[0].Image = push(2*n + 1)
		began = time.Now()
		result := bed.SyncPod(b.Context(), pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{})
		ours += time.Since(began)
		if result.Err != nil || result.RetryAfter > 0 {
			b.Fatalf("%+v", result)
		}
		bed.discard(b, result.Status.RunningPod(bed.Name()))
	}
	b.ReportMetric(float64(raw.Milliseconds())/float64(b.N), "raw-ms/pod")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ours-ms/pod")
	b.ReportMetric(float64(ours)/float64(raw), "ratio")
}

func (b *bed) rawPod(t testing.TB, n int, image string) string {
	ctx := context.Background()
	client := b.containerd.Client()
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: fmt.Sprintf("raw-%d", n), Namespace: "default", Uid: fmt.Sprintf("raw-%d", n)},
		Hostname:     "raw",
		LogDirectory: t.TempDir(),
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: fmt.Sprintf("%s/raw-%d", b.containerd.CgroupRoot, n)},
	}
	id, err := client.RunPodSandbox(ctx, sandbox, "")
	if err != nil {
		t.Fatal(err)
	}
	container, err := client.CreateContainer(ctx, id, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
		Image:    &runtimeapi.ImageSpec{Image: image},
		Command:  shell("main", forever).Command,
		LogPath:  "main.log",
		Linux:    &runtimeapi.LinuxContainerConfig{},
	}, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.StartContainer(ctx, container); err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bed) discard(t testing.TB, running *runtimestate.RunningPod) {
	client := b.containerd.Client()
	for _, s := range running.Sandboxes {
		if err := client.StopPodSandbox(context.Background(), s.ID.ID); err != nil {
			t.Fatal(err)
		}
		if err := client.RemovePodSandbox(context.Background(), s.ID.ID); err != nil {
			t.Fatal(err)
		}
	}
}
