package podruntime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// These tests need a newer containerd than Debian's: make test-long has it.

func TestImagesAreVolumes(t *testing.T) {
	b := newBed(t)
	b.containerd.Only(t, 2, 1)
	registry := critest.NewRegistry(t)
	registry.User, registry.Password = "me", "secret"
	reference := registry.Push(t, "team/data:1", critest.Image{Files: map[string]string{"model/weights": "heavy", "model/deep/notes": "light"}})
	host, _, _ := strings.Cut(reference, "/")
	secret := &core.Secret{
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"username":"me","password":"secret"}}}`, host)},
	}
	mounted := func(subPath string) SyncOptions {
		return SyncOptions{
			PullSecrets: func() []*core.Secret { return []*core.Secret{secret} },
			Mounts: func(context.Context, *core.Container, map[string]string) ([]runtimeconfig.Mount, error) {
				return []runtimeconfig.Mount{{ContainerPath: "/data", ImageVolume: "data", ImageSubPath: subPath, ReadOnly: true}}, nil
			},
		}
	}
	podWithImage := func(name, reference, script string) *core.Pod {
		c := shell("main", script)
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		pod := newPod(name, c)
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
			Reference: reference, PullPolicy: corev1.PullIfNotPresent,
		}}}}
		return pod
	}

	pod := podWithImage("whole", reference, "cat /data/model/weights; echo; touch /data/new 2>/dev/null; echo $?; "+forever)
	if r := b.sync(t, pod, mounted("")); r.Err != nil || len(r.Status.Running()) != 1 {
		t.Fatalf("%+v", r)
	}
	b.until(t, pod, "in the log", func(*runtimestate.PodStatus) bool { return strings.Count(b.log(t, pod, "main", 0), "\n") == 2 })
	if log := b.log(t, pod, "main", 0); log != "heavy\n1\n" {
		t.Errorf("log %q, want what is in the image, and that it is read-only", log)
	}
	if !b.events.has(fmt.Sprintf("Pulled spec.volumes{data}: Successfully pulled image %q in ", reference)) {
		t.Error("no event tells of the pull")
	}

	part := podWithImage("part", reference, "cat /data/notes; echo; "+forever)
	if r := b.sync(t, part, mounted("model/deep")); r.Err != nil || len(r.Status.Running()) != 1 {
		t.Fatalf("with subPath: %+v", r)
	}
	b.until(t, part, "in the log", func(*runtimestate.PodStatus) bool { return b.log(t, part, "main", 0) == "light\n" })
	nowhere := podWithImage("nowhere", reference, forever)
	if r := b.sync(t, nowhere, mounted("no/such")); r.Err == nil || r.Waiting["main"].Reason == "" {
		t.Errorf("a subPath that is not there: %+v", r)
	}

	many := podWithImage("many", reference, "cat /data/model/weights; echo; "+forever)
	for len(many.Spec.Containers) < 2*sideBySide {
		c := *many.Spec.Containers[0].DeepCopy()
		c.Name = fmt.Sprint("c", len(many.Spec.Containers))
		many.Spec.Containers = append(many.Spec.Containers, c)
	}
	if r := b.sync(t, many, mounted("")); r.Err != nil || len(r.Status.Running()) != len(many.Spec.Containers) {
		t.Fatalf("many at once: %v %v, %d run", r.Err, r.Waiting, len(r.Status.Running()))
	}
	for _, c := range many.Spec.Containers {
		b.until(t, many, "in the log of "+c.Name, func(*runtimestate.PodStatus) bool { return b.log(t, many, c.Name, 0) == "heavy\n" })
	}

	none := podWithImage("none", registry.Reference("team/none:1"), forever)
	r := b.sync(t, none, mounted(""))
	if w := r.Waiting["main"]; w.Reason != image.ReasonErrPull || r.Err != nil || r.RetryAfter == 0 {
		t.Errorf("an image that is not there: %+v", r)
	}
	if r = b.sync(t, none, mounted("")); r.Waiting["main"].Reason != image.ReasonPullBackOff {
		t.Errorf("at once again: %+v", r)
	}
}

func TestUserNamespaceOfItsOwn(t *testing.T) {
	const first, count = 5 * 65536, 65536
	b := newBed(t, func(c *Config) {
		c.Configs.UserIDs = func(types.UID) (uint32, uint32, error) { return first, count, nil }
	})
	b.containerd.Only(t, 2, 0)
	no := false
	script := "cat /proc/self/uid_map /proc/self/gid_map; stat -c '%u %g' /own /etc/hosts /dev/termination-log; " +
		"echo new > /own/new && stat -c '%u %g' /own/new; echo said > /dev/termination-log; " + forever
	c := shell("main", script)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/own"}}
	pod := newPod("userns", c)
	pod.Spec.HostUsers = &no
	dir := filepath.Join(b.Configs.RootDir, "own")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := b.sync(t, pod, SyncOptions{Mounts: func(context.Context, *core.Container, map[string]string) ([]runtimeconfig.Mount, error) {
		return []runtimeconfig.Mount{{ContainerPath: "/own", HostPath: dir}}, nil
	}})
	if !b.features().GetUserNamespaces() {
		t.Skip("the container runtime says that it has no user namespaces on this machine")
	}
	if r.Err != nil || len(r.Status.Running()) != 1 {
		t.Fatalf("%+v", r)
	}
	b.until(t, pod, "in the log", func(*runtimestate.PodStatus) bool { return strings.Count(b.log(t, pod, "main", 0), "\n") == 6 })
	lines := strings.Split(b.log(t, pod, "main", 0), "\n")
	for i, line := range lines[:6] {
		want := "0 0" // in the container, files have the same owners as on the host
		if i < 2 {
			want = fmt.Sprintf("0 %d %d", first, count)
		}
		if got := strings.Join(strings.Fields(line), " "); got != want {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
}

func TestMountsAreReadOnlyAllTheWayDown(t *testing.T) {
	b := newBed(t)
	b.containerd.Only(t, 2, 0)
	if !b.features().GetRecursiveReadOnlyMounts() {
		t.Skip("the container runtime says that it has no recursive read-only mounts on this machine")
	}
	c := shell("main", "grep ' /sys-below' /proc/self/mountinfo | grep -vc ' ro[, ]'; "+forever)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "sys", MountPath: "/sys-below"}}
	pod := newPod("rro", c)
	r := b.sync(t, pod, SyncOptions{Mounts: func(context.Context, *core.Container, map[string]string) ([]runtimeconfig.Mount, error) {
		return []runtimeconfig.Mount{{ContainerPath: "/sys-below", HostPath: "/sys", ReadOnly: true, RecursiveReadOnly: corev1.RecursiveReadOnlyEnabled}}, nil
	}})
	if r.Err != nil || len(r.Status.Running()) != 1 {
		t.Fatalf("%+v", r)
	}
	b.until(t, pod, "in the log", func(*runtimestate.PodStatus) bool { return b.log(t, pod, "main", 0) == "0\n" })
}

func TestGroupsAreThoseThatAreAskedFor(t *testing.T) {
	b := newBed(t)
	b.containerd.Only(t, 2, 0)
	web, strict := int64(1000), corev1.SupplementalGroupsPolicyStrict
	for name, want := range map[string]string{"merge": "[1000 2000 3000]", "strict": "[1000 3000]"} { // in the image, web is a member of group 2000
		pod := newPod(name, shell("main", forever))
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &web, RunAsGroup: &web, SupplementalGroups: []int64{3000}}
		if name == "strict" {
			pod.Spec.SecurityContext.SupplementalGroupsPolicy = &strict
		}
		r := b.sync(t, pod, SyncOptions{})
		if r.Err != nil || len(r.Status.Running()) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		user := r.Status.Container("main").User
		if user == nil {
			t.Fatalf("%s: the user is not reported", name)
		}
		slices.Sort(user.SupplementalGroups)
		if user.UID != web || user.GID != web || fmt.Sprint(user.SupplementalGroups) != want {
			t.Errorf("%s: %+v, want the groups %s", name, user, want)
		}
	}
}

// features returns the features that the runtime reports for its default
// handler.
func (b *bed) features() *runtimeapi.RuntimeHandlerFeatures {
	for _, handler := range b.Configs.Reported().GetRuntimeHandlers() {
		if handler.GetName() == "" {
			return handler.GetFeatures()
		}
	}
	return nil
}
