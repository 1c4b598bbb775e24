package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// finish waits for the end of all pods and stops the kubelet. If it leaves a
// sandbox, a mount, a control group, a network namespace, a file or a goroutine
// behind, the test fails, whatever else it tests.
func (b *bed) finish() {
	if b.t.Failed() {
		b.stop()
		return // the test has failed already; others clean up
	}
	b.api.setAway(false)
	if !b.running {
		b.again()
	}
	b.removeManifests()
	b.deleteAll()
	b.waitEmpty()
	b.stop()
	b.waitGoroutines()
}

// removeManifests ends the static pods. Hollow kubelets have no manifest
// directory, and an empty path would be the test's own.
func (b *bed) removeManifests() {
	if b.config.Sources.StaticPodPath == "" {
		return
	}
	entries, err := os.ReadDir(b.config.Sources.StaticPodPath)
	if err != nil {
		b.t.Error(err)
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(b.config.Sources.StaticPodPath, entry.Name())); err != nil {
			b.t.Error(err)
		}
	}
}

// deleteAll deletes all pods, and waits for their end.
func (b *bed) deleteAll() {
	ctx := context.Background() // the test's own context has ended
	pods := b.client.Resource(core.Pods, "default")
	var list corev1.PodList
	if err := pods.List(ctx, &list); err != nil {
		b.t.Fatal(err)
	}
	for i := range list.Items {
		name, grace := list.Items[i].Name, new(int64(1))
		if list.Items[i].Annotations[core.ConfigMirrorAnnotation] != "" {
			grace = new(int64(0))
		}
		if err := pods.Delete(ctx, name, &metav1.DeleteOptions{GracePeriodSeconds: grace}, nil); err != nil {
			b.t.Logf("deleting pod %s: %v", name, err) // it was gone already
		}
	}
	for i := range list.Items {
		name := list.Items[i].Name
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
}

// waitEmpty waits until nothing of any pod is left on the node.
func (b *bed) waitEmpty() {
	b.t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			b.t.Logf("left on the node:\n%s", strings.Join(left, "\n"))
		}
	}()
	b.eventually("nothing of any pod to be on the node", func() bool {
		left = b.left()
		return len(left) == 0
	})
}

// left is everything on the node that belongs to a pod.
func (b *bed) left() []string {
	var left []string
	note := func(err error) {
		if err != nil {
			left = append(left, err.Error())
		}
	}
	pods, err := b.kubelet.machinery.state.Pods(context.Background())
	note(err)
	for _, pod := range pods {
		left = append(left, fmt.Sprintf("in the runtime: %s/%s %s", pod.Namespace, pod.Name, pod.UID))
	}
	mounts, err := mount.Below(b.config.RootDir)
	note(err)
	left = append(left, slices.DeleteFunc(mounts, func(point string) bool { return point == b.config.RootDir })...)
	patterns := []string{filepath.Join(b.config.RootDir, "pods", "*"), filepath.Join(b.config.PodLogsDir, "*")}
	if b.containerd != nil {
		for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} { // in cgroup v2 and v1
			patterns = append(patterns, root+b.config.Cgroups.Root+"/kubepods/pod*", root+b.config.Cgroups.Root+"/kubepods/*/pod*")
		}
		patterns = append(patterns, filepath.Join(b.containerd.Dir, "state", "io.containerd.grpc.v1.cri", "netns", "*"))
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		note(err)
		left = append(left, found...)
	}
	return left
}

// waitGoroutines waits until no goroutine runs the kubelet's code. A test's own
// don't count.
func (b *bed) waitGoroutines() {
	var running []string
	defer func() {
		if len(running) > 0 {
			b.t.Logf("goroutines that go on:\n%s", strings.Join(running, "\n\n"))
		}
	}()
	b.eventually("the kubelet's goroutines to end", func() bool {
		stacks := make([]byte, 16<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		running = slices.DeleteFunc(strings.Split(string(stacks), "\n\n"), func(stack string) bool {
			return !strings.Contains(stack, "kctl/kubelet/internal/") || strings.Contains(stack, "_test.go") || strings.Contains(stack, "/critest.")
		})
		return len(running) == 0
	})
}
