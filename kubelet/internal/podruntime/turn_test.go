package podruntime

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// endings runs pods in memory, where time costs nothing, and notes when each container, and each command that
// is executed in one, has ended. Commands hang until their caller gives up.
type endings struct {
	*Manager

	mu    sync.Mutex
	hooks []time.Time
}

func newEndings(t *testing.T, behave map[string]simulated.Behaviour) *endings {
	t.Helper()
	e := &endings{}
	runtime := simulated.New(simulated.Options{
		Clock: clock.RealClock{}, Stop: 100 * time.Millisecond,
		Behave: func(_ *runtimeapi.PodSandboxConfig, c *runtimeapi.ContainerConfig) simulated.Behaviour {
			return behave[c.GetMetadata().GetName()]
		},
		Fault: func(ctx context.Context, method string, call func() error) error {
			if method != "ExecSync" {
				return call()
			}
			<-ctx.Done()
			e.mu.Lock()
			defer e.mu.Unlock()
			e.hooks = append(e.hooks, time.Now())
			return ctx.Err()
		},
	})
	client := cri.NewOver(runtime.Connection(), cri.Options{})
	reader, err := runtimestate.NewReader(t.Context(), client, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if e.Manager, err = New(client, reader, Config{
		Events: &eventLog{}, Clock: clock.RealClock{}, Logger: zap.NewNop(), PodLogsDir: dir, HostIPs: hostIPs,
		Configs: newConfigs(t, runtimeconfig.Options{
			Environment: &environment.Sources{}, Reported: func() *runtimeapi.StatusResponse { return nil }, RootDir: dir, PodLogsDir: dir,
		}),
	}); err != nil {
		t.Fatal(err)
	}
	return e
}

// end starts the pod, ends it, and returns when each of its containers had ended, in seconds after it was
// asked to.
func (e *endings) end(t *testing.T, pod *core.Pod) map[string]time.Duration {
	t.Helper()
	status := &runtimestate.PodStatus{UID: pod.UID}
	for range len(pod.Spec.InitContainers) + 1 {
		r := e.SyncPod(t.Context(), pod, status, SyncOptions{})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		status = r.Status
	}
	began := time.Now()
	if err := e.KillPod(t.Context(), pod, status.RunningPod("simulated"), nil); err != nil {
		t.Fatal(err)
	}
	ended, err := e.state.PodStatus(t.Context(), pod.UID, pod.Name, pod.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	took := map[string]time.Duration{}
	for _, c := range ended.Containers {
		took[c.Name] = c.FinishedAt.Sub(began).Round(time.Second)
	}
	return took
}

func withSidecars(hook *corev1.LifecycleHandler) *core.Pod {
	pod, grace, always := newPod("sidecars", shell("main", forever)), int64(30), corev1.ContainerRestartPolicyAlways
	pod.Spec.TerminationGracePeriodSeconds = &grace
	for _, name := range []string{"first", "second", "third"} {
		c := shell(name, forever)
		c.RestartPolicy = &always
		if hook != nil {
			c.Lifecycle = &corev1.Lifecycle{PreStop: hook}
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	return pod
}

// However many sidecars a pod has, it ends within its grace period and the time that a container always gets:
// those whose turn has not come by then are ended together.
func TestSidecarsEndTogetherAfterTheGracePeriod(t *testing.T) {
	stubborn := simulated.Behaviour{Stubborn: true}
	for name, test := range map[string]struct {
		behave map[string]simulated.Behaviour
		hook   *corev1.LifecycleHandler
		want   map[string]time.Duration
	}{
		"all end when asked to": {nil, nil, map[string]time.Duration{"main": 0, "third": 0, "second": 0, "first": 0}},
		"none does": {map[string]simulated.Behaviour{"main": stubborn, "third": stubborn, "second": stubborn, "first": stubborn}, nil,
			map[string]time.Duration{"main": 30, "third": 32, "second": 32, "first": 32}},
		"a sidecar does not": {map[string]simulated.Behaviour{"third": stubborn}, nil,
			map[string]time.Duration{"main": 0, "third": 30, "second": 30, "first": 30}},
		"hooks take all their time": {nil, exec("sleep 1000"), map[string]time.Duration{"main": 0, "third": 30, "second": 30, "first": 30}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took := newEndings(t, test.behave).end(t, withSidecars(test.hook))
				want := map[string]time.Duration{}
				for name, seconds := range test.want {
					want[name] = seconds * time.Second
				}
				if !maps.Equal(took, want) {
					t.Errorf("%v, want %v", took, want)
				}
			})
		})
	}
}

// A hook that is not done when the grace period is over goes on for as long as its container does.
func TestAHookGoesOnAsLongAsItsContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndings(t, map[string]simulated.Behaviour{"main": {Stubborn: true}})
		pod, began := withSidecars(nil), time.Now()
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: exec("sleep 1000")}
		e.end(t, pod)
		if len(e.hooks) != 1 || e.hooks[0].Sub(began).Round(time.Second) != 32*time.Second {
			t.Errorf("began at %v, hooks ended at %v", began, e.hooks)
		}
	})
}

// Whatever the grace period, a container has two seconds to end itself before it is killed.
func TestNoContainerIsKilledAtOnce(t *testing.T) {
	for _, grace := range []int64{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			e := newEndings(t, map[string]simulated.Behaviour{"stubborn": {Stubborn: true}})
			pod := newPod("web", shell("main", forever), shell("stubborn", forever))
			pod.Spec.TerminationGracePeriodSeconds = &grace
			took := e.end(t, pod)
			want := map[string]time.Duration{"main": 0, "stubborn": time.Duration(max(grace, 2)) * time.Second}
			if !maps.Equal(took, want) {
				t.Errorf("with a grace period of %d s: %v, want %v", grace, took, want)
			}
		})
	}
}
