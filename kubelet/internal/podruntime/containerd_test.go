package podruntime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// eventLog keeps events as "Reason fieldPath: message".
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *eventLog) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	l.add(reason + ": " + fmt.Sprintf(format, args...))
}

func (l *eventLog) ContainerEventf(_ *core.Pod, fieldPath, _, reason, format string, args ...any) {
	l.add(reason + " " + fieldPath + ": " + fmt.Sprintf(format, args...))
}

func (l *eventLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *eventLog) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

func (l *eventLog) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// bed is a Manager on a containerd of its own.
type bed struct {
	*Manager
	*runtimestate.Reader
	containerd *critest.Containerd
	events     *eventLog
	objects    *objectMap
}

type objectMap struct {
	configMaps map[string]*core.ConfigMap
	secrets    map[string]*core.Secret
}

func newBed(t testing.TB, change ...func(*Config)) *bed {
	t.Helper()
	d := critest.Start(t)
	b := &bed{containerd: d, events: &eventLog{}, objects: &objectMap{}}
	dir := t.TempDir()
	status, err := d.Client().Status(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Events: b.events, Clock: clock.RealClock{}, Logger: zap.NewNop(), HostIPs: hostIPs, PodLogsDir: filepath.Join(dir, "logs"),
		Configs: newConfigs(t, runtimeconfig.Options{
			Environment:  &environment.Sources{Events: b.events, Objects: b.objects, NodeName: "node", HostIPs: hostIPs},
			Reported:     func() *runtimeapi.StatusResponse { return status },
			RootDir:      filepath.Join(dir, "kubelet"),
			PodLogsDir:   filepath.Join(dir, "logs"),
			CgroupParent: func(pod *core.Pod) string { return d.CgroupRoot + "/pod" + string(pod.UID) },
		}),
	}
	for _, f := range change {
		f(&config)
	}
	if b.Reader, err = runtimestate.NewReader(t.Context(), d.Client(), config.Clock); err != nil {
		t.Fatal(err)
	}
	if b.Manager, err = New(d.Client(), b.Reader, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("events:\n%s", strings.Join(b.events.lines, "\n"))
		}
	})
	return b
}

func newConfigs(t testing.TB, o runtimeconfig.Options) *runtimeconfig.Maker {
	t.Helper()
	configs, err := runtimeconfig.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return configs
}

// hostIPs are those of the tests' node.
func hostIPs() []string { return []string{"192.0.2.1"} }

func newPod(name string, containers ...core.Container) *core.Pod {
	grace := int64(1)
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}},
		Spec: core.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: &grace,
			Containers:                    containers,
		},
	}
}

// shell is a container that runs a script and ends on SIGTERM.
func shell(name, script string) core.Container {
	return core.Container{
		Name:                     name,
		Image:                    critest.BusyboxImage,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		Command:                  []string{"/bin/sh", "-c", "trap 'exit 0' TERM; " + script},
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

const forever = "while :; do sleep 1000 & wait; done"

// sync calls SyncPod with the runtime's present state of the pod.
func (b *bed) sync(t testing.TB, pod *core.Pod, o SyncOptions) SyncResult {
	t.Helper()
	return b.SyncPod(t.Context(), pod, b.status(t, pod), o)
}

func (b *bed) status(t testing.TB, pod *core.Pod) *runtimestate.PodStatus {
	t.Helper()
	status, err := b.PodStatus(t.Context(), pod.UID, pod.Name, pod.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// until polls the pod's status until it is as wanted.
func (b *bed) until(t testing.TB, pod *core.Pod, what string, wanted func(*runtimestate.PodStatus) bool) *runtimestate.PodStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status := b.status(t, pod)
		if wanted(status) {
			return status
		}
		select {
		case <-ctx.Done():
			t.Fatalf("pod %s never came to be %s: %s", pod.Name, what, show(status))
		case <-tick.C:
		}
	}
}

func exited(name string, count int32) func(*runtimestate.PodStatus) bool {
	return func(s *runtimestate.PodStatus) bool {
		c := s.Container(name)
		return c != nil && c.State == runtimestate.StateExited && c.RestartCount == count
	}
}

func show(s *runtimestate.PodStatus) string {
	var out strings.Builder
	for _, b := range s.Sandboxes {
		fmt.Fprintf(&out, "sandbox %+v\n", *b)
	}
	for _, c := range s.Containers {
		fmt.Fprintf(&out, "container %+v\n", *c)
	}
	return out.String()
}

func (b *bed) log(t testing.TB, pod *core.Pod, container string, count int32) string {
	t.Helper()
	path := filepath.Join(podfiles.LogDirectory(b.PodLogsDir, pod.Namespace, pod.Name, pod.UID), podfiles.LogPath(container, count))
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(content)) {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			text.WriteString(fields[3])
		}
	}
	return text.String()
}

func (o *objectMap) ConfigMap(_ context.Context, namespace, name string) (*core.ConfigMap, error) {
	if m := o.configMaps[namespace+"/"+name]; m != nil {
		return m, nil
	}
	return nil, notFound("configmaps", name)
}

func (o *objectMap) Secret(_ context.Context, namespace, name string) (*core.Secret, error) {
	if s := o.secrets[namespace+"/"+name]; s != nil {
		return s, nil
	}
	return nil, notFound("secrets", name)
}
