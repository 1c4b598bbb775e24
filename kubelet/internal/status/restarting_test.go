package status

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// restarted is the status of a pod whose container has been restarted.
func restarted(count int32, ready bool) core.PodStatus {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	if ready {
		state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	status := core.PodStatus{Phase: corev1.PodRunning}
	status.ContainerStatuses = []core.ContainerStatus{{Name: "web", RestartCount: count, Ready: ready, State: state}}
	return status
}

// Restarts make no patch of their own: each comes with the patch that says so in the status, and
// whole, as what is known grows.
func TestRestartsComeWithStatuses(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		m.Set(pods.pod, restarted(0, true))
		time.Sleep(time.Minute)
		ended := relay.Restart{
			Container:    "web",
			Number:       1,
			Cause:        relay.CauseExit,
			ExitCode:     1,
			Ended:        time.Now(),
			BackOffFrom:  time.Now(),
			BackOffUntil: time.Now().Add(time.Minute),
		}
		m.Restarting(pods.pod, ended)
		synctest.Wait()
		if len(api.patches) != 1 {
			t.Fatalf("a restart is told without a status: %v", api.patches)
		}
		m.Set(pods.pod, restarted(0, false))
		time.Sleep(time.Minute)
		m.Restarting(pods.pod, relay.Restart{Container: "web", Number: 1, Started: time.Now()})
		ready := time.Now()
		m.Set(pods.pod, restarted(1, true))
		time.Sleep(time.Minute)
		m.Set(pods.pod, restarted(1, false))
		time.Sleep(time.Minute)
		synctest.Wait()
		whole := ended
		whole.Started, whole.Ready = ready, ready
		want := [][]relay.Restart{nil, {ended}, {whole}, nil}
		if !slices.EqualFunc(api.restarts, want, slices.Equal[[]relay.Restart]) {
			t.Errorf("got  %+v\nwant %+v", api.restarts, want)
		}
	})
}

func TestRestartsThatDidNotArriveAreToldAgain(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		api.busy = 2 // patches that conflict
		m.Restarting(pods.pod, relay.Restart{Container: "web", Number: 1, Cause: relay.CauseOOM, Ended: time.Now()})
		m.Set(pods.pod, restarted(0, false))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(api.restarts) != 1 || len(api.restarts[0]) != 1 {
			t.Errorf("%+v", api.restarts)
		}
	})
}

// What has ended a container before this kubelet was there is not known: it may have been the
// kubelet before. That it had no memory left, the runtime has recorded.
func TestAnEndBeforeTheKubeletHasNoCause(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		before := time.Now().Add(-time.Second)
		m.Restarting(pods.pod, relay.Restart{Container: "a", Number: 1, Cause: relay.CauseExit, Ended: before})
		m.Restarting(pods.pod, relay.Restart{Container: "b", Number: 1, Cause: relay.CauseOOM, Ended: before})
		m.Restarting(pods.pod, relay.Restart{Container: "c", Number: 1, Cause: relay.CauseExit, Ended: time.Now()})
		m.Set(pods.pod, restarted(0, false))
		time.Sleep(time.Minute)
		synctest.Wait()
		var causes []relay.Cause
		for _, r := range api.restarts[0] {
			causes = append(causes, r.Cause)
		}
		if want := []relay.Cause{"", relay.CauseOOM, relay.CauseExit}; !slices.Equal(causes, want) {
			t.Errorf("%v, want %v", causes, want)
		}
	})
}
