package podruntime

import (
	"context"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	testclock "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// TestWhatIsToldOfARestart: a container that is ended in order to be restarted
// is reported as running all the time, unless its start takes long.
func TestWhatIsToldOfARestart(t *testing.T) {
	for name, slow := range map[string]bool{"at once": false, "not at once": true} {
		t.Run(name, func(t *testing.T) {
			time := testclock.NewFakeClock(time.Now())
			b := newBed(t, func(c *Config) { c.Clock = time })
			c := shell("main", forever)
			c.LivenessProbe = &corev1.Probe{}
			pod := newPod("restarts", c)
			first := b.start(t, pod).Containers[0].ID
			ended := make(chan struct{})
			told := 0
			r := b.sync(t, pod, SyncOptions{
				Probes: func(id runtimestate.ContainerID) podactions.ProbeResults {
					if id == first {
						return podactions.ProbeResults{Liveness: podactions.ProbeFailure}
					}
					return podactions.ProbeResults{}
				},
				Changed: func(s *runtimestate.PodStatus) {
					if told++; len(s.Running()) == 0 {
						close(ended)
					}
				},
				Prepare: func(ctx context.Context) error {
					for slow {
						select {
						case <-ended:
							return nil
						case <-ctx.Done():
							return ctx.Err()
						default:
							time.Step(restartTime)
							runtime.Gosched()
						}
					}
					return nil
				},
			})
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			want := 1
			if slow {
				want = 2
			}
			if main := r.Status.Container("main"); told != want || main.State != runtimestate.StateRunning || main.RestartCount != 1 {
				t.Errorf("told %d times, want %d; at the end %s", told, want, show(r.Status))
			}
			if before := r.Status.ContainerByID(first); before == nil || before.State != runtimestate.StateExited {
				t.Errorf("the one before is %+v", before)
			}
		})
	}
}

// A sidecar that can't be started again holds up nothing in a pod that has been initialized.
func TestOthersRestartBesideASidecarThatCant(t *testing.T) {
	b := newBed(t)
	pod := newPod("held-up", shell("main", forever))
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
	pod.Spec.InitContainers = []core.Container{shell("proxy", forever)}
	proxy := &pod.Spec.InitContainers[0]
	proxy.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	b.sync(t, pod, SyncOptions{})
	if first := b.sync(t, pod, SyncOptions{}); first.Err != nil || len(first.Status.Running()) != 2 {
		t.Fatalf("%s %v", show(first.Status), first.Err)
	}
	proxy.Image, proxy.ImagePullPolicy = "critest.local/none:1", corev1.PullNever
	r := b.sync(t, pod, SyncOptions{Probes: func(runtimestate.ContainerID) podactions.ProbeResults {
		return podactions.ProbeResults{Liveness: podactions.ProbeFailure}
	}})
	if main := r.Status.Container("main"); main.State != runtimestate.StateRunning || main.RestartCount != 1 || r.Waiting["proxy"].Reason != "ErrImageNeverPull" {
		t.Errorf("%s, waiting: %+v", show(r.Status), r.Waiting)
	}
}
