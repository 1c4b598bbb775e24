package bench_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/test/harness"
)

// template is the configuration that the kubelet sent to the runtime for one
// pod, in the JSON in which the runtime reports it. Each replay decodes a copy
// of its own.
type template struct {
	sandbox, container json.RawMessage
}

// learn starts a pod like the benchmark's and reads its configuration from the
// runtime. The pod runs until the end: replays mount its files.
func (r *rawRuntime) learn(pods *follower) {
	const name = "template"
	pods.create(name)
	pods.await(harness.Running, name)
	ctx := r.b.Context()
	list, err := r.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": name},
	}})
	if err != nil || len(list.Containers) != 1 {
		r.b.Fatalf("the runtime has %d containers of pod %s, not one: %v", len(list.GetContainers()), name, err)
	}
	of := list.Containers[0]
	sandbox, err := r.client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: of.PodSandboxId, Verbose: true})
	if err != nil {
		r.b.Fatal(err)
	}
	container, err := r.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: of.Id, Verbose: true})
	if err != nil {
		r.b.Fatal(err)
	}
	r.pod = template{sandbox: r.config(sandbox.Info), container: r.config(container.Info)}
	if box, c, err := r.pod.decode(); err != nil || box.GetMetadata().GetName() != name || c.GetImage().GetImage() == "" {
		r.b.Fatalf("the runtime's verbose status has no configuration that can be read: %v\n%s\n%s", err, r.pod.sandbox, r.pod.container)
	}
}

// config is the configuration in a verbose status of the runtime's.
func (r *rawRuntime) config(info map[string]string) json.RawMessage {
	var verbose struct{ Config json.RawMessage }
	if err := json.Unmarshal([]byte(info["info"]), &verbose); err != nil || len(verbose.Config) == 0 {
		r.b.Fatalf("the runtime's verbose status tells no configuration: %v", err)
	}
	return verbose.Config
}

func (t template) decode() (*runtimeapi.PodSandboxConfig, *runtimeapi.ContainerConfig, error) {
	box, c := &runtimeapi.PodSandboxConfig{}, &runtimeapi.ContainerConfig{}
	if err := json.Unmarshal(t.sandbox, box); err != nil {
		return nil, nil, fmt.Errorf("the sandbox's configuration: %w", err)
	}
	if err := json.Unmarshal(t.container, c); err != nil {
		return nil, nil, fmt.Errorf("the container's configuration: %w", err)
	}
	return box, c, nil
}

// replay does for a sandbox of its own what the kubelet did for the template:
// it makes the control group and the log directory, and the same three calls.
func (r *rawRuntime) replay(name string) (ids [2]string) {
	box, c, err := r.pod.decode()
	if r.failed(err) {
		return ids
	}
	box.Metadata = &runtimeapi.PodSandboxMetadata{Name: name, Namespace: rawNamespace, Uid: "same-" + name}
	box.Hostname = name
	box.LogDirectory = r.b.TempDir()
	box.Linux.CgroupParent = filepath.Join("/", rawGroup, name)
	for _, label := range []string{ // a kubelet takes sandboxes with these labels for its own
		"io.kubernetes.pod.uid", "io.kubernetes.pod.name", "io.kubernetes.pod.namespace", "io.kubernetes.container.name",
	} {
		delete(box.Labels, label)
		delete(c.Labels, label)
	}
	dirs := []string{filepath.Dir(filepath.Join(box.LogDirectory, c.LogPath))}
	for _, hierarchy := range hierarchies() {
		dirs = append(dirs, hierarchy+box.Linux.CgroupParent)
	}
	for _, dir := range dirs {
		if r.failed(os.MkdirAll(dir, 0o755)) {
			return ids
		}
	}
	return r.run(box, c)
}

// hierarchies are those of cgroup v1, or the single one of v2, whose root has
// no file named tasks.
func hierarchies() []string {
	tasks, _ := filepath.Glob("/sys/fs/cgroup/*/tasks")
	if len(tasks) == 0 {
		return []string{"/sys/fs/cgroup"}
	}
	for i := range tasks {
		tasks[i] = filepath.Dir(tasks[i])
	}
	return tasks
}
