package podworker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
)

// world is a Syncer whose steps take (fake) time and fail at random. It checks
// at each step the invariants that must hold whatever the order of events.
type world struct {
	t      *testing.T
	random *rand.Rand

	mu      sync.Mutex
	busy    map[types.UID]bool
	names   map[types.NamespacedName]types.UID // started pods by full name
	ending  map[types.UID]bool                 // termination has begun
	grace   map[types.UID]int64
	running map[types.UID]bool // may have containers
	steps   int
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{
		t: t, random: rand.New(rand.NewPCG(seed, 7)),
		busy: map[types.UID]bool{}, names: map[types.NamespacedName]types.UID{}, ending: map[types.UID]bool{},
		grace: map[types.UID]int64{}, running: map[types.UID]bool{},
	}
}

func (w *world) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *world) enter(uid types.UID, check func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	if w.busy[uid] {
		w.t.Errorf("two steps of %s at once", uid)
	}
	w.busy[uid] = true
	check()
}

func (w *world) leave(uid types.UID, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[uid] = false
	done()
}

// spend lets up to two seconds pass; it fails when ctx ends, and sometimes at
// random.
func (w *world) spend(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(w.roll(2000)) * time.Millisecond):
	}
	if w.roll(5) == 0 {
		return errors.New("step failed")
	}
	return nil
}

func (w *world) SyncPod(ctx context.Context, job Job) (Outcome, error) {
	uid, name := job.Pod.UID, job.fullName()
	w.enter(uid, func() {
		if other, taken := w.names[name]; taken && other != uid {
			w.t.Errorf("%s is synced while %s of the same name %s is not finished", uid, other, name)
		}
		if w.ending[uid] {
			w.t.Errorf("%s is synced after its termination began", uid)
		}
		w.names[name] = uid
		w.running[uid] = true
	})
	err := w.spend(ctx)
	terminal := err == nil && w.roll(6) == 0
	w.leave(uid, func() {})
	return Outcome{Terminal: terminal, After: time.Duration(w.roll(5)) * time.Second}, err
}

func (w *world) SyncTerminatingPod(ctx context.Context, job Job) error {
	uid := job.Pod.UID
	w.enter(uid, func() {
		w.ending[uid] = true
		if job.GracePeriod < 1 {
			w.t.Errorf("%s is terminated with grace period %d", uid, job.GracePeriod)
		}
		if before, ok := w.grace[uid]; ok && job.GracePeriod > before {
			w.t.Errorf("grace period of %s grew from %d to %d", uid, before, job.GracePeriod)
		}
		w.grace[uid] = job.GracePeriod
	})
	err := w.spend(ctx)
	w.leave(uid, func() {
		if err == nil {
			w.running[uid] = false
		}
	})
	return err
}

func (w *world) SyncTerminatingRuntimePod(ctx context.Context, pod Orphan) error {
	w.enter(pod.UID, func() {})
	err := w.spend(ctx)
	w.leave(pod.UID, func() {})
	return err
}

func (w *world) SyncTerminatedPod(ctx context.Context, job Job) error {
	uid := job.Pod.UID
	w.enter(uid, func() {
		if w.running[uid] {
			w.t.Errorf("%s is cleaned up while containers may run", uid)
		}
	})
	err := w.spend(ctx)
	w.leave(uid, func() {
		if err != nil {
			return
		}
		delete(w.ending, uid)
		delete(w.grace, uid)
		if w.names[job.fullName()] == uid {
			delete(w.names, job.fullName())
		}
	})
	return err
}

func modelPod(i int) *core.Pod {
	seconds := int64(30)
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "model", Name: fmt.Sprintf("pod-%d", i%3), UID: types.UID(fmt.Sprintf("uid-%d", i))},
		Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &seconds},
	}
}

// source plays the pods' source: it knows which pods exist, and sends only
// updates that a source can send.
type source struct {
	workers *Workers
	pods    map[types.UID]*core.Pod
	done    []chan struct{}
}

func (s *source) act(w *world) {
	i := w.roll(6)
	pod, exists := s.pods[modelPod(i).UID]
	switch action := w.roll(10); {
	case !exists && action < 5:
		pod = modelPod(i)
		s.pods[pod.UID] = pod
		s.workers.Update(Update{Type: Create, Pod: pod})
	case !exists && action < 6:
		s.workers.Update(Update{Type: Kill, Running: &Orphan{UID: modelPod(i).UID, Namespace: "model", Name: modelPod(i).Name}})
	case exists && action < 4:
		s.workers.Update(Update{Type: Change, Pod: pod})
	case exists && action < 5:
		pod = pod.DeepCopy()
		now, seconds := metav1.Now(), int64(w.roll(40))
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &seconds
		s.pods[pod.UID] = pod
		s.workers.Update(Update{Type: Change, Pod: pod})
	case exists && action < 6:
		for range 1 + w.roll(10) {
			s.kill(pod, int64(w.roll(20)))
		}
	case exists && action < 8:
		s.remove(pod)
	case action < 9:
		s.workers.SyncKnownPods(s.known())
	default:
		s.workers.SyncDue()
		s.workers.Resync(modelPod(i).UID)
	}
}

func (s *source) kill(pod *core.Pod, seconds int64) {
	done := make(chan struct{})
	s.done = append(s.done, done)
	s.workers.Update(Update{Type: Kill, Pod: pod, Kill: &KillOptions{GracePeriod: &seconds, Done: done, Status: func(*core.PodStatus) {}}})
}

func (s *source) remove(pod *core.Pod) {
	delete(s.pods, pod.UID)
	s.workers.Update(Update{Type: Kill, Pod: pod, Kill: &KillOptions{Removed: true}})
}

func (s *source) known() map[types.UID]bool {
	known := map[types.UID]bool{}
	for uid := range s.pods {
		known[uid] = true
	}
	return known
}

// mostKept is how much the workers may keep about one pod, and about the next one under its UID.
const mostKept = 8

// checkBounds checks that however often pods are killed, nothing grows but the list of those who
// wait for their ends.
func (s *source) checkBounds(t *testing.T) {
	s.workers.mu.Lock()
	defer s.workers.mu.Unlock()
	waiting := slices.DeleteFunc(slices.Clone(s.done), func(done chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	told := 0
	for uid, e := range s.workers.entries {
		others, waiters := kept(reflect.ValueOf(e).Elem())
		if others > mostKept {
			t.Fatalf("%s (%s): %d updates, options and functions are kept, at most %d should be", uid, e.phase, others, mostKept)
		}
		told += waiters
	}
	if told != len(waiting) {
		t.Fatalf("%d who wait for a pod's end will be told, not %d", told, len(waiting))
	}
}

// kept counts what is reachable from a value of the workers, other than pods: updates, options and
// functions, and channels of those who wait for an end.
func kept(v reflect.Value) (others, waiters int) {
	add := func(inner reflect.Value) {
		o, w := kept(inner)
		others, waiters = others+o, waiters+w
	}
	switch v.Kind() {
	case reflect.Chan:
		if !v.IsNil() {
			waiters++
		}
	case reflect.Func:
		if !v.IsNil() {
			others++
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*core.Pod]() {
			others++
			add(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			add(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			add(field)
		}
	}
	return others, waiters
}

// A pod that is killed a thousand times, and then comes again under its UID and is killed as
// often, is not kept a thousand times.
func TestKillsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		s := &source{workers: New(t.Context(), w, Options{Clock: clock.RealClock{}})}
		defer s.workers.Stop()
		pod := modelPod(0)
		for range 2 {
			s.workers.Update(Update{Type: Create, Pod: pod})
			for i := range int64(1000) {
				s.kill(pod, 1000-i)
				s.workers.Update(Update{Type: Change, Pod: pod})
			}
			s.checkBounds(t)
			s.workers.Update(Update{Type: Kill, Pod: pod, Kill: &KillOptions{Removed: true}})
		}
	})
}

// TestAnyOrderOfEvents sends random events to the workers and checks world's
// invariants; in the end all workers must be idle.
func TestAnyOrderOfEvents(t *testing.T) {
	const seeds = 200
	steps := 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			s := &source{pods: map[types.UID]*core.Pod{}}
			s.workers = New(t.Context(), w, Options{Clock: clock.RealClock{}})
			defer s.workers.Stop()
			for range 300 {
				s.act(w)
				s.checkBounds(t)
				time.Sleep(time.Duration(w.roll(400)) * time.Millisecond) // the bubble's clock
			}
			for _, pod := range s.pods {
				s.remove(pod)
			}
			for range 600 {
				time.Sleep(time.Second) // the bubble's clock
				s.workers.SyncDue()
			}
			synctest.Wait()
			if left := s.workers.SyncKnownPods(nil); len(left) > 0 {
				t.Errorf("seed %d: left over: %v", seed, left)
			}
			for i, done := range s.done {
				select {
				case <-done:
				default:
					t.Errorf("seed %d: kill %d was never reported done", seed, i)
				}
			}
			if len(w.names) > 0 || len(s.workers.names) > 0 || len(s.workers.waiting) > 0 {
				t.Errorf("seed %d: names still held: %v %v %v", seed, w.names, s.workers.names, s.workers.waiting)
			}
			steps += w.steps
		})
	}
	if steps < seeds*100 {
		t.Errorf("only %d steps were done for %d seeds: the test proves less than it says", steps, seeds)
	}
}
