package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/probe"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/relay"
)

type noMirrors struct{}

func (noMirrors) EnsureMirror(*core.Pod) {}
func (noMirrors) Retire(*core.Pod)       {}

// withGroups gives the Lifecycle what syncs need as far as the pod's directory, and control groups of the test's own.
func withGroups(t *testing.T, l *Lifecycle) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	root := fmt.Sprintf("/lifecycletest-%d-%d", os.Getpid(), time.Now().UnixNano())
	groups, err := cgroup.New(cgroup.Options{Root: root, PerQOS: true, PodPidsLimit: 99})
	t.Cleanup(func() {
		found, _ := filepath.Glob("/sys/fs/cgroup/*" + root)
		if cgroups.IsCgroup2UnifiedMode() {
			found = []string{"/sys/fs/cgroup" + root}
		}
		for _, dir := range found {
			if err := cgroups.RemovePath(dir); err != nil {
				t.Errorf("removing %s: %v", dir, err)
			}
		}
	})
	if err != nil {
		t.Skipf("control groups can not be made here: %v", err)
	}
	l.Cgroups, l.Allocations, l.RecordGrants = groups, allocation.New(), func() {}
	l.Mirrors, l.NetworkError = noMirrors{}, func() error { return nil }
	l.HostIPs, l.Begun = func() []string { return nil }, func(*core.Pod, time.Time) {}
	l.Ending = func(types.UID) bool { return false }
	l.Statuses = status.NewManager(status.Options{Pods: l.Pods, Clock: clock.RealClock{}, Logger: zap.NewNop()})
	l.Probes = probe.NewManager(probe.Config{Reported: func(pod *core.Pod) *core.PodStatus { return &pod.Status }, Clock: clock.RealClock{}})
}

// limitOf is the memory limit of a guaranteed pod's group.
func limitOf(t *testing.T, l *Lifecycle, pod *core.Pod) string {
	t.Helper()
	path := filepath.Join("/sys/fs/cgroup/memory", l.Cgroups.Parent(pod), "memory.limit_in_bytes")
	if cgroups.IsCgroup2UnifiedMode() {
		path = filepath.Join("/sys/fs/cgroup", l.Cgroups.Parent(pod), "memory.max")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func guaranteed(memory string) *core.Pod {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}}
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse(memory)}
	pod.Spec.Containers = []core.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}
	return pod
}

// A pod whose first sync ended before its control group was made gets one with limits in a later sync: else
// the runtime makes one without.
func TestTheGroupIsMadeByWhicheverSyncComesThatFar(t *testing.T) {
	l, _ := newLifecycle(t, nil)
	withGroups(t, l)
	if err := os.Remove(l.RootDir); err != nil { // so that no sync comes further than the directory
		t.Fatal(err)
	}
	if err := os.WriteFile(l.RootDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pod := guaranteed("64Mi")
	l.Cache.Set(pod.UID, &runtimestate.PodStatus{UID: pod.UID}, nil, time.Now())
	l.NetworkError = func() error { return errors.New("no CNI configuration") }
	_, err := l.SyncPod(t.Context(), podworker.Job{Update: podworker.Update{Type: podworker.Create, Pod: pod}, First: true})
	if err == nil || !strings.Contains(err.Error(), "no CNI configuration") {
		t.Fatalf("the first sync: %v", err)
	}
	l.NetworkError = func() error { return nil }
	_, err = l.SyncPod(t.Context(), podworker.Job{Update: podworker.Update{Type: podworker.Sync, Pod: pod}})
	if err == nil || !strings.Contains(err.Error(), "directory of the pod") {
		t.Fatalf("the second sync: %v", err)
	}
	if got := limitOf(t, l, pod); got != fmt.Sprint(64<<20) {
		t.Errorf("the limit of memory is %s", got)
	}
}

// Only a group that the kubelet makes is in the trace, and one that can't be made is told of.
func TestTheMakingOfAGroupIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		uid     types.UID
		perQOS  bool
		stamped bool
		event   string
	}{
		"made":         {uid: "web", perQOS: true, stamped: true},
		"not ours":     {uid: "web"},
		"can't be had": {uid: "no\x00name", perQOS: true, event: "FailedCreatePodContainer: unable to ensure pod container exists: "},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newLifecycle(t, nil)
			withGroups(t, l)
			l.Cgroups.PerQOS = c.perQOS
			if err := errors.Join(os.Remove(l.RootDir), os.WriteFile(l.RootDir, nil, 0o600)); err != nil { // so that the sync ends there
				t.Fatal(err)
			}
			pod := guaranteed("64Mi")
			pod.UID = c.uid
			l.Cache.Set(pod.UID, &runtimestate.PodStatus{UID: pod.UID}, nil, time.Now())
			if _, err := l.SyncPod(t.Context(), podworker.Job{Update: podworker.Update{Type: podworker.Create, Pod: pod}, First: true}); err == nil {
				t.Fatal("no error")
			}
			stamped := slices.ContainsFunc(l.Statuses.Stamps(pod).Unsent(), func(s relay.Stamp) bool { return s.Hop == relay.KubeletCgroupCreated })
			if stamped != c.stamped {
				t.Errorf("stamped: %v", stamped)
			}
			if told := l.Events.(*eventLog).has("FailedCreatePodContainer: "); told != (c.event != "") || told && !l.Events.(*eventLog).has(c.event) {
				t.Errorf("events: %q", l.Events.(*eventLog).lines)
			}
		})
	}
}

// The group has room for the pod as it was until it has its final limits, even if what was left to do
// failed after its containers were resized.
func TestAGroupIsSettledOnceItCanBe(t *testing.T) {
	l, _ := newLifecycle(t, nil)
	withGroups(t, l)
	small, large := guaranteed("32Mi"), guaranteed("64Mi")
	l.Allocations.Admit(large)
	found := &runtimestate.PodStatus{UID: small.UID, Containers: []*runtimestate.ContainerStatus{{Name: "main", State: runtimestate.StateRunning}}}
	ensure := func(pod *core.Pod, want int64) func() error {
		t.Helper()
		finishCgroup, err := l.ensureCgroup(pod, found)
		if err != nil {
			t.Fatal(err)
		}
		if got := limitOf(t, l, pod); got != fmt.Sprint(want) {
			t.Errorf("the limit of memory is %s, want %d", got, want)
		}
		return finishCgroup
	}
	ensure(large, 64<<20)
	l.Allocations.Allocate(small, func(*core.Pod, func(*core.Pod) *core.Pod) *core.PodCondition { return nil })
	other := errors.New("container other: its secret is missing")
	finishCgroup := ensure(small, 64<<20)
	if err := l.finishResize(small, found, other, finishCgroup); !errors.Is(err, other) {
		t.Fatal(err)
	}
	ensure(small, 64<<20) // main has not been resized
	l.Allocations.SetFailure(small.UID, "too little memory")
	l.Allocations.SetActual(small, "main", small.Spec.Containers[0].Resources)
	finishCgroup = ensure(small, 64<<20)
	if err := l.finishResize(small, found, other, finishCgroup); !errors.Is(err, other) {
		t.Fatal(err)
	}
	ensure(small, 32<<20) // although another container can't be started
	if conditions := l.resizeConditions(small.UID, found); len(conditions) > 0 {
		t.Errorf("conditions: %v", conditions)
	}
	if why := l.Allocations.Failure(small.UID); why != "" {
		t.Errorf("its resizing still counts as failed: %s", why)
	}
}

// A kubelet that ended when the containers of a pod had been resized and its group had not leaves the
// rest, and the look at the memory that is used, to the next.
func TestAResizeThatAnotherKubeletBeganIsFinished(t *testing.T) {
	l, _ := newLifecycle(t, nil)
	withGroups(t, l)
	small, large := guaranteed("32Mi"), guaranteed("64Mi")
	if err := l.Cgroups.Create(large); err != nil {
		t.Fatal(err)
	}
	later, err := cgroup.New(l.Cgroups.Options)
	if err != nil {
		t.Fatal(err)
	}
	l.Cgroups = later
	l.Allocations.Admit(small)
	found := &runtimestate.PodStatus{UID: small.UID, Containers: []*runtimestate.ContainerStatus{{Name: "main", State: runtimestate.StateRunning}}}
	finishCgroup, err := l.ensureCgroup(small, found)
	if err != nil {
		t.Fatal(err)
	}
	if got := limitOf(t, l, small); got != fmt.Sprint(64<<20) {
		t.Errorf("the limit of memory is %s before the use was looked at", got)
	}
	if conditions := l.resizeConditions(small.UID, found); len(conditions) != 1 || conditions[0].Type != corev1.PodResizeInProgress {
		t.Errorf("conditions: %v", conditions)
	}
	if err := l.finishResize(small, found, nil, finishCgroup); err != nil {
		t.Fatal(err)
	}
	if got := limitOf(t, l, small); got != fmt.Sprint(32<<20) || len(l.resizeConditions(small.UID, found)) > 0 {
		t.Errorf("in the end the limit of memory is %s", got)
	}
}
