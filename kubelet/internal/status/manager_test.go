package status

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// fakeAPI holds one pod and applies patches as the API server does. It can be
// slow, away, or without the pod.
type fakeAPI struct {
	t *testing.T

	mu       sync.Mutex
	pod      *core.Pod // nil when deleted
	away     bool
	slow     time.Duration
	late     time.Duration // delay of the answer
	busy     int           // how many patches conflict with others'
	patches  []string
	stamps   []relay.Stamp
	restarts [][]relay.Restart // of each patch
	flying   int
	deletes  int
}

var errAway = errors.New("connection refused")

func notFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
}

func (a *fakeAPI) PatchStatus(_ context.Context, _ types.NamespacedName, patch []byte, report relay.Report) (*core.Pod, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flying++; a.flying > 1 {
		a.t.Error("two patches of one pod under way")
	}
	a.mu.Unlock()
	time.Sleep(a.slow) // the bubble's clock
	a.mu.Lock()
	a.flying--
	switch {
	case a.away:
		return nil, errAway
	case a.pod == nil:
		return nil, notFound()
	case a.busy > 0:
		a.busy--
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("the object has been modified"))
	}
	before, _ := json.Marshal(a.pod)
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	patched := &core.Pod{}
	if err := json.Unmarshal(after, patched); err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(a.pod.ResourceVersion)
	patched.ResourceVersion = strconv.Itoa(n + 1)
	a.pod = patched
	a.patches = append(a.patches, string(patch))
	a.stamps, a.restarts = append(a.stamps, report.Stamps...), append(a.restarts, report.Restarts)
	a.mu.Unlock()
	time.Sleep(a.late)
	a.mu.Lock()
	return patched, nil
}

func (a *fakeAPI) Delete(_ context.Context, _ types.NamespacedName, uid types.UID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.away:
		return errAway
	case a.pod == nil || a.pod.UID != uid:
		return notFound()
	}
	a.deletes++
	a.pod = nil
	return nil
}

// fakePods is what the watch has delivered; the test updates it.
type fakePods struct {
	mu  sync.Mutex
	pod *core.Pod
}

func (p *fakePods) ByUID(uid types.UID) (*core.Pod, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pod, p.pod != nil && p.pod.UID == uid
}

func (p *fakePods) APIPod(pod *core.Pod) *core.Pod { return pod }

func (p *fakePods) set(pod *core.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pod = pod
}

func bed(t *testing.T, test func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods), told ...func(*Options)) {
	synctest.Test(t, func(t *testing.T) {
		pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "1"}}
		pod.Status.Conditions = []core.PodCondition{{Type: "example.com/other", Status: corev1.ConditionTrue}}
		api, pods := &fakeAPI{t: t, pod: pod}, &fakePods{pod: pod}
		options := Options{API: api, Pods: pods, Clock: clock.RealClock{}, Logger: zap.NewNop()}
		for _, tell := range told {
			tell(&options)
		}
		m := NewManager(options)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = m.Run(ctx)
		}()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		test(t, m, api, pods)
	})
}

func phaseStatus(phase corev1.PodPhase) core.PodStatus {
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	return core.PodStatus{Phase: phase, Conditions: []core.PodCondition{{Type: corev1.PodReady, Status: ready}}}
}

func TestStatusIsSentAtOnceAndOnce(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		m.Stamps(pods.pod).Stamp(relay.KubeletSeen, time.Now())
		m.Set(pods.pod, phaseStatus(corev1.PodRunning))
		synctest.Wait()
		if len(api.patches) != 1 || api.pod.Status.Phase != corev1.PodRunning {
			t.Fatalf("patches %v", api.patches)
		}
		if findCondition(api.pod.Status.Conditions, "example.com/other") == nil {
			t.Error("another's condition was lost")
		}
		if len(api.stamps) != 3 {
			t.Errorf("stamps %v, want seen, running and ready", api.stamps)
		}
		m.Set(pods.pod, phaseStatus(corev1.PodRunning))
		m.Reconcile(pods.pod) // the watch is behind: the answer to the patch counts
		synctest.Wait()
		if len(api.patches) != 1 {
			t.Errorf("the same status was sent again: %v", api.patches)
		}
	})
}

func TestTheNewestStatusWins(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		api.slow = time.Second
		m.Set(pods.pod, phaseStatus(corev1.PodPending))
		synctest.Wait() // the first patch is in flight
		for range 5 {
			m.Set(pods.pod, phaseStatus(corev1.PodRunning))
			m.Set(pods.pod, core.PodStatus{Phase: corev1.PodRunning, Message: "between"})
		}
		m.Set(pods.pod, phaseStatus(corev1.PodSucceeded))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(api.patches) != 2 || api.pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("%d patches, phase %s: %v", len(api.patches), api.pod.Status.Phase, api.patches)
		}
		m.Set(pods.pod, phaseStatus(corev1.PodRunning))
		time.Sleep(time.Minute)
		synctest.Wait()
		if api.pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("phase went back to %s", api.pod.Status.Phase)
		}
	})
}

// A status that is known to be incomplete waits for the next one, even if that is the same.
func TestAnUnsettledStatusIsNotSent(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		m.SetUnsettled(pods.pod, phaseStatus(corev1.PodRunning))
		m.Reconcile(pods.pod)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(api.patches) != 0 || m.Sending() {
			t.Errorf("sent: %v, sending: %v", api.patches, m.Sending())
		}
		m.Set(pods.pod, phaseStatus(corev1.PodRunning))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(api.patches) != 1 || api.pod.Status.Phase != corev1.PodRunning {
			t.Errorf("phase %s after %v", api.pod.Status.Phase, api.patches)
		}
	})
}

func TestStatusSurvivesAnAbsentAPI(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		api.away = true
		m.Stamps(pods.pod).Stamp(relay.KubeletSeen, time.Now())
		m.Set(pods.pod, phaseStatus(corev1.PodRunning))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		api.mu.Lock()
		api.away = false
		api.mu.Unlock()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if len(api.patches) != 1 || len(api.stamps) != 3 {
			t.Errorf("patches %v, stamps %v", api.patches, api.stamps)
		}
		// Somebody else overwrites it, and the watch shows that.
		other := api.pod.DeepCopy()
		other.Status.Phase, other.ResourceVersion = corev1.PodUnknown, "9"
		api.pod = other
		pods.set(other)
		m.Reconcile(other)
		synctest.Wait()
		if api.pod.Status.Phase != corev1.PodRunning {
			t.Errorf("phase is %s, want it set right", api.pod.Status.Phase)
		}
	})
}

// Others write to the pod at the same time: what they overwrite is corrected,
// even if the watch shows it before our own request was answered, and a
// conflict with them is no reason to give up.
func TestOthersWriteMeanwhile(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		api.late = time.Second
		m.Set(pods.pod, phaseStatus(corev1.PodRunning))
		synctest.Wait() // it is stored, and the answer is on its way
		other := api.pod.DeepCopy()
		other.Status.Phase, other.ResourceVersion = corev1.PodUnknown, "9"
		api.pod = other
		pods.set(other)
		m.Reconcile(other)
		time.Sleep(time.Minute)
		synctest.Wait()
		if api.pod.Status.Phase != corev1.PodRunning {
			t.Errorf("phase is %s, want it set right", api.pod.Status.Phase)
		}
		api.busy = 3
		m.Set(pods.pod, phaseStatus(corev1.PodSucceeded))
		time.Sleep(time.Minute)
		synctest.Wait()
		if api.pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("phase is %s after conflicts", api.pod.Status.Phase)
		}
	})
}

func TestObjectGoesWhenThePodIsFinished(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		at := metav1.Now()
		deleting := api.pod.DeepCopy()
		deleting.DeletionTimestamp, deleting.ResourceVersion = &at, "5"
		api.pod = deleting
		pods.set(deleting)
		m.Set(deleting, phaseStatus(corev1.PodSucceeded))
		synctest.Wait()
		if api.deletes != 0 {
			t.Error("the object went before the pod was finished")
		}
		m.Finish(deleting)
		synctest.Wait()
		if api.deletes != 1 || len(api.patches) != 1 {
			t.Errorf("%d deletes after patches %v", api.deletes, api.patches)
		}
		m.Finish(deleting)
		m.Reconcile(deleting)
		synctest.Wait()
		if api.deletes != 1 {
			t.Errorf("deleted %d times", api.deletes)
		}
		pods.set(nil)
		m.Retain(func(types.UID) bool { return false })
		if _, ok := m.Get("u"); ok {
			t.Error("the pod is still known")
		}
	})
}

func TestAPodThatIsGoneIsNotPatchedForEver(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		pod := api.pod
		api.pod = nil
		m.Set(pod, phaseStatus(corev1.PodRunning))
		time.Sleep(time.Hour)
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if e := m.entries["u"]; e.busy || e.sent != e.version {
			t.Errorf("still trying: %+v", e)
		}
	})
}

// A manager that is stopped while statuses arrive waits for those it began to send,
// and begins no more: the race detector would see it.
func TestStopsWhileStatusesArrive(t *testing.T) {
	for range 200 {
		pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}}
		m := NewManager(Options{API: &fakeAPI{t: t, pod: pod}, Pods: &fakePods{pod: pod}, Clock: clock.RealClock{}, Logger: zap.NewNop()})
		ctx, stop := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { _ = m.Run(ctx) })
		both.Go(func() {
			m.Finish(pod)
			m.Set(pod, core.PodStatus{Phase: corev1.PodRunning})
			m.Reconcile(pod)
		})
		both.Go(stop)
		both.Wait()
	}
}

// While a status can't be sent, each reason for that is logged once, however often it is tried.
func TestWhyAStatusIsNotSentIsLogged(t *testing.T) {
	lines, logged := observer.New(zap.WarnLevel)
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		api.away = true
		m.Set(pods.pod, phaseStatus(corev1.PodRunning))
		time.Sleep(time.Hour)
		api.mu.Lock()
		api.away, api.busy = false, 5
		api.mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := logged.FilterMessage("pod status not sent, will retry").Len(); n != 2 || api.busy > 0 {
			t.Errorf("%d lines: %v", n, logged.All())
		}
	}, func(o *Options) { o.Logger = zap.New(lines) })
}
