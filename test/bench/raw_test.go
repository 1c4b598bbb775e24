package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/test/harness"
)

// rawRuntime makes the CRI calls that no kubelet can do without. They are the
// floors of a pod's start and end.
type rawRuntime struct {
	b      *testing.B
	client runtimeapi.RuntimeServiceClient
	pod    template
}

const (
	// rawGroup is the control group of raw sandboxes: without one, the runtime
	// makes one itself and leaves it behind.
	rawGroup = "kctl-bench-raw"

	rawNamespace = "raw"
)

func newRawRuntime(b *testing.B, c *harness.Cluster) *rawRuntime {
	conn, err := grpc.NewClient("unix://"+c.Dir+"/run/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	r := &rawRuntime{b: b, client: runtimeapi.NewRuntimeServiceClient(conn)}
	b.Cleanup(func() {
		r.removeSandboxes()
		conn.Close()
		for _, below := range []string{"/*", ""} {
			for _, root := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
				groups, _ := filepath.Glob(root + rawGroup + below + "/cgroup.procs")
				for _, procs := range groups {
					if err := os.Remove(filepath.Dir(procs)); err != nil && !os.IsNotExist(err) {
						b.Error(err)
					}
				}
			}
		}
	})
	return r
}

// removeSandboxes removes what a failed benchmark left behind.
func (r *rawRuntime) removeSandboxes() {
	ctx := context.Background()
	list, err := r.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if r.failed(err) {
		return
	}
	for _, s := range list.Items {
		if s.GetMetadata().GetNamespace() == rawNamespace {
			_, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.Id})
			r.failed(err)
			_, err = r.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id})
			r.failed(err)
		}
	}
}

// start runs one container with the least configuration possible, and returns
// the ids of its sandbox and itself.
func (r *rawRuntime) start(name string) (ids [2]string) {
	return r.run(&runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: rawNamespace, Uid: "raw-" + name},
		LogDirectory: r.b.TempDir(),
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/" + rawGroup},
	}, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
		Image:    &runtimeapi.ImageSpec{Image: harness.Demo + ":latest"},
		Args:     []string{"sleep", "infinity"},
		LogPath:  "c.log",
	})
}

func (r *rawRuntime) run(config *runtimeapi.PodSandboxConfig, of *runtimeapi.ContainerConfig) (ids [2]string) {
	ctx := context.Background()
	sandbox, err := r.client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if r.failed(err) {
		return ids
	}
	container, err := r.client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: config, Config: of,
	})
	if r.failed(err) {
		return ids
	}
	_, err = r.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId})
	r.failed(err)
	return [2]string{sandbox.PodSandboxId, container.ContainerId}
}

// end stops the container, which exits at once, and removes everything.
func (r *rawRuntime) end(ids [2]string) {
	ctx := context.Background()
	stop := &runtimeapi.StopContainerRequest{ContainerId: ids[1], Timeout: 2}
	_, err := r.client.StopContainer(ctx, stop)
	if err != nil { // containerd fails if the container exits just before it is stopped
		_, err = r.client.StopContainer(ctx, stop)
	}
	r.failed(err)
	_, err = r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: ids[0]})
	r.failed(err)
	_, err = r.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: ids[0]})
	r.failed(err)
}

func (r *rawRuntime) failed(err error) bool {
	if err != nil {
		r.b.Error(fmt.Errorf("raw call: %w", err))
	}
	return err != nil
}
