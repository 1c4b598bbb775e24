package bench_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/test/harness"
)

const starts = 30

// BenchmarkCreateToRunning starts pods one after another, and between them
// sandboxes by the runtime's own three calls.
func BenchmarkCreateToRunning(b *testing.B) {
	c := harness.Start(b, harness.Options{})
	conn, err := grpc.NewClient("unix://"+c.Dir+"/run/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	raw := &rawRuntime{b: b, client: runtimeapi.NewRuntimeServiceClient(conn)}
	w, err := c.Client().CoreV1().Pods("default").Watch(b.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.namespace", "default").String()})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	awaitRunning := func(name string) {
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Name == name && harness.Running(pod) {
				return
			}
		}
		b.Fatal("the watch ended")
	}
	var pods, floor []time.Duration
	for b.Loop() {
		for i := range starts + 1 {
			name := fmt.Sprintf("bench-%d-%d", b.N, i)
			begin := time.Now()
			c.Create(harness.Pod(name, harness.Demo, "sleep", "infinity"))
			awaitRunning(name)
			took := time.Since(begin)
			rawTook := raw.start(i)
			if i > 0 { // the first pulls the image
				pods, floor = append(pods, took), append(floor, rawTook)
			}
			if err := c.Client().CoreV1().Pods("default").Delete(b.Context(), name, *metav1.NewDeleteOptions(0)); err != nil {
				b.Fatal(err)
			}
			c.AwaitGone(name)
			raw.stop()
		}
	}
	p50, floor50 := median(pods), median(floor)
	b.ReportMetric(ms(p50), "ms/pod")
	b.ReportMetric(ms(floor50), "ms/raw-cri")
	b.ReportMetric(float64(p50)/float64(floor50), "x-floor")
	b.ReportMetric(ms(quantile(pods, 0.9)), "ms/pod-p90")
	b.ReportMetric(ms(quantile(floor, 0.9)), "ms/raw-cri-p90")
	b.ReportMetric(0, "ns/op")
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(d []time.Duration) time.Duration { return quantile(d, 0.5) }

func quantile(d []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[int(q*float64(len(sorted)-1))]
}

// rawRuntime makes the calls that no kubelet can do without.
type rawRuntime struct {
	b       *testing.B
	client  runtimeapi.RuntimeServiceClient
	sandbox string
}

func (r *rawRuntime) start(i int) time.Duration {
	ctx := context.Background()
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("raw-", i), Namespace: "raw", Uid: fmt.Sprint("raw-", r.b.N, "-", i)},
		LogDirectory: r.b.TempDir(),
		Linux:        &runtimeapi.LinuxPodSandboxConfig{},
	}
	begin := time.Now()
	sandbox, err := r.client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		r.b.Fatal(err)
	}
	r.sandbox = sandbox.PodSandboxId
	container, err := r.client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
			Image:    &runtimeapi.ImageSpec{Image: harness.Demo + ":latest"},
			Args:     []string{"sleep", "infinity"},
			LogPath:  "c.log",
		}})
	if err != nil {
		r.b.Fatal(err)
	}
	if _, err := r.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId}); err != nil {
		r.b.Fatal(err)
	}
	return time.Since(begin)
}

func (r *rawRuntime) stop() {
	ctx := context.Background()
	if _, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: r.sandbox}); err != nil {
		r.b.Fatal(err)
	}
	if _, err := r.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: r.sandbox}); err != nil {
		r.b.Fatal(err)
	}
}
