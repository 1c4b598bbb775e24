package activepods

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
)

// steps are those of pods that run until they are killed. A pod that has a grace period never comes to its end.
type steps struct{ podworker.Syncer }

func (steps) SyncPod(context.Context, podworker.Job) (podworker.Outcome, error) {
	return podworker.Outcome{}, nil
}

func (steps) SyncTerminatingPod(ctx context.Context, job podworker.Job) error {
	if job.Pod.Spec.TerminationGracePeriodSeconds != nil {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (steps) SyncTerminatedPod(context.Context, podworker.Job) error { return nil }

// world is what the rooms know of the pods of one node.
type world struct {
	pods     *podmanager.Manager
	workers  *podworker.Workers
	statuses *status.Manager
	cache    *podcache.Cache
}

// in runs a test in a world of its own.
func in(t *testing.T, test func(t *testing.T, w *world, active *Pods)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{pods: podmanager.New(), cache: podcache.New()}
		w.workers = podworker.New(t.Context(), steps{}, podworker.Options{Clock: clock.RealClock{}})
		defer w.workers.Stop()
		w.statuses = status.NewManager(status.Options{Pods: w.pods, Clock: clock.RealClock{}, Logger: zap.NewNop()})
		test(t, w, New(w.pods, w.workers, w.statuses, w.cache))
	})
}

// desire adds a pod that no worker has yet; its object says the phase.
func (w *world) desire(name string, phase corev1.PodPhase) *core.Pod {
	pod := &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Status:     core.PodStatus{Phase: phase},
	}
	w.pods.Set(pod)
	return pod
}

func (w *world) start(pod *core.Pod) {
	w.workers.Update(podworker.Update{Type: podworker.Create, Pod: pod})
	synctest.Wait()
}

func (w *world) kill(pod *core.Pod) {
	w.workers.Update(podworker.Update{Type: podworker.Kill, Pod: pod, Kill: &podworker.KillOptions{}})
	synctest.Wait()
}

func namesOf(pods []*core.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

// What counts of a pod is how far its worker is, and before that what it is said to be.
func TestWhichPodsHoldResources(t *testing.T) {
	in(t, func(t *testing.T, w *world, active *Pods) {
		pods := map[string]*core.Pod{
			"new":                 w.desire("new", corev1.PodPending),
			"ended before":        w.desire("ended before", corev1.PodSucceeded),
			"refused":             w.desire("refused", corev1.PodPending),
			"runs":                w.desire("runs", corev1.PodRunning),
			"ends":                w.desire("ends", corev1.PodRunning),
			"ended":               w.desire("ended", corev1.PodRunning),
			"is cleaned up after": w.desire("is cleaned up after", corev1.PodFailed),
			"left something":      w.desire("left something", corev1.PodFailed),
		}
		w.statuses.Set(pods["refused"], core.PodStatus{Phase: corev1.PodFailed})
		for _, name := range []string{"ends", "is cleaned up after", "left something"} {
			pods[name].Spec.TerminationGracePeriodSeconds = new(int64(30))
		}
		for _, name := range []string{"runs", "ends", "ended", "is cleaned up after", "left something"} {
			w.start(pods[name])
		}
		w.kill(pods["ends"])
		w.kill(pods["ended"])
		w.cache.Set("left something", &runtimestate.PodStatus{
			UID: "left something", Containers: []*runtimestate.ContainerStatus{{State: runtimestate.StateRunning}},
		}, nil, time.Now())

		holding := map[string]bool{"new": true, "runs": true, "ends": true, "left something": true}
		for name, pod := range pods {
			if got := active.Active(pod); got != holding[name] {
				t.Errorf("%s: holds resources: %t", name, got)
			}
		}
		if got := namesOf(active.Others(pods["runs"])); !slices.Equal(got, []string{"ends", "left something", "new"}) {
			t.Errorf("others that hold resources beside the one that runs: %q", got)
		}
		if got := namesOf(active.MayRun()); !slices.Equal(got, []string{"ends", "is cleaned up after", "left something", "runs"}) {
			t.Errorf("may have something running: %q", got)
		}
		if got := namesOf(active.Running()); !slices.Equal(got, []string{"runs"}) {
			t.Errorf("run and are not ending: %q", got)
		}
		for name, pod := range pods {
			if got := active.Ended(pod.UID); got != (name == "ended") {
				t.Errorf("%s: ended: %t", name, got)
			}
		}
	})
}

// While a pod's worker hangs, nothing shows that the pod was evicted: evicting it again would spare all others.
func TestPodsAreEvictedOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world, active *Pods) {
		runs, slow := w.desire("runs", corev1.PodRunning), w.desire("slow", corev1.PodRunning)
		slow.Spec.TerminationGracePeriodSeconds = new(int64(3600))
		w.start(runs)
		w.start(slow)
		w.kill(slow)
		if got := namesOf(active.Evictable()); !slices.Equal(got, []string{"runs", "slow"}) {
			t.Errorf("one of them was deleted: %q can be evicted", got)
		}
		w.workers.Update(podworker.Update{Type: podworker.Kill, Pod: slow, Kill: &podworker.KillOptions{Status: func(*core.PodStatus) {}}})
		if got := namesOf(active.Evictable()); !slices.Equal(got, []string{"runs"}) {
			t.Errorf("one of them was evicted: %q can be evicted", got)
		}
		w.start(w.desire("ended", corev1.PodFailed))
		if got := namesOf(active.Evictable()); !slices.Equal(got, []string{"runs"}) {
			t.Errorf("one of them ended before: %q can be evicted", got)
		}
	})
}

// Why a pod ended is told by its newest status, or by its object if an earlier kubelet ended it.
func TestWhatPodsEndedFor(t *testing.T) {
	in(t, func(t *testing.T, w *world, active *Pods) {
		runs, told, earlier := w.desire("runs", corev1.PodRunning), w.desire("told", corev1.PodRunning), w.desire("earlier", corev1.PodFailed)
		earlier.Status.Reason = "Evicted"
		for _, pod := range []*core.Pod{runs, told} {
			w.statuses.Set(pod, core.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"})
		}
		for _, pod := range []*core.Pod{runs, told, earlier} {
			w.start(pod)
		}
		w.kill(told)
		w.kill(earlier)
		got := map[string]bool{}
		for _, pod := range w.pods.Pods() {
			got[pod.Name] = active.EndedFor(pod.UID, "Preempting", "Evicted")
		}
		if want := map[string]bool{"runs": false, "told": true, "earlier": true}; !maps.Equal(got, want) {
			t.Errorf("ended for it: %v", got)
		}
		if active.EndedFor("told", "Preempting") {
			t.Error("ended for another reason")
		}
	})
}

// A pod is forgotten once its source has not got it, and its worker has let it go.
func TestWhichPodsAreForgotten(t *testing.T) {
	in(t, func(t *testing.T, w *world, active *Pods) {
		pod := w.desire("p", corev1.PodRunning)
		if active.Forgotten(pod.UID) {
			t.Error("before its worker began")
		}
		w.start(pod)
		w.pods.Remove(pod)
		if active.Forgotten(pod.UID) {
			t.Error("while its worker is busy")
		}
		w.kill(pod)
		w.workers.SyncKnownPods(nil)
		if !active.Forgotten(pod.UID) {
			t.Error("not in the end")
		}
	})
}

// The images that pods have as volumes are in use for as long as the pods hold resources.
func TestImagesOfVolumesAreThoseOfActivePods(t *testing.T) {
	in(t, func(t *testing.T, w *world, active *Pods) {
		for name, phase := range map[string]corev1.PodPhase{"new": corev1.PodPending, "ended": corev1.PodSucceeded} {
			pod := w.desire(name, phase)
			pod.Spec.Volumes = []corev1.Volume{{Name: "none"}, {Name: "image", VolumeSource: corev1.VolumeSource{
				Image: &corev1.ImageVolumeSource{Reference: "of-" + name},
			}}}
		}
		if got := active.VolumeImages(); !slices.Equal(got, []string{"of-new"}) {
			t.Errorf("got %q", got)
		}
	})
}
