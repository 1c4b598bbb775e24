package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/runtimestate"
)

// pod makes one from words, newest first: "box1" or "box1!" (ended) is a
// sandbox; "a3:running@box1" is restart 3 of container a in it.
func pod(uid, words string) *runtimestate.RunningPod {
	p := &runtimestate.RunningPod{UID: types.UID(uid), Name: uid, Namespace: "ns"}
	for word := range strings.FieldsSeq(words) {
		if strings.HasPrefix(word, "box") {
			state := runtimestate.StateRunning
			if strings.HasSuffix(word, "!") {
				state = runtimestate.StateExited
			}
			p.Sandboxes = append(p.Sandboxes, &runtimestate.RunningContainer{
				ID: runtimestate.ContainerID{Type: "t", ID: strings.TrimSuffix(word, "!")}, State: state,
			})
			continue
		}
		id, rest, _ := strings.Cut(word, ":")
		state, box, _ := strings.Cut(rest, "@")
		p.Containers = append(p.Containers, &runtimestate.RunningContainer{
			ID: runtimestate.ContainerID{Type: "t", ID: id}, Name: id[:1], Attempt: int32(id[1] - '0'),
			State: runtimestate.ContainerState(state), SandboxID: box,
		})
	}
	return p
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name, pod string
		known     bool
		want      string
	}{
		{"all runs", "box1 a0:running@box1", true, ""},
		{"one dead is kept", "box1 a1:running@box1 a0:exited@box1", true, ""},
		{"older dead go", "box1 a2:running@box1 a1:exited@box1 a0:exited@box1", true, "a0"},
		{"dead ones alone", "box1 a2:exited@box1 a1:exited@box1 a0:exited@box1 b0:exited@box1", true, "a0"},
		{"unknown stays", "box1 a1:unknown@box1 a0:unknown@box1", true, ""},
		{"created stays", "box1 a1:created@box1 a0:exited@box1", true, ""},
		{"created and passed over", "box1 a2:running@box1 a1:created@box1 a0:exited@box1", true, "a0"},
		{"old sandbox goes", "box2 box1! a1:running@box2 a0:exited@box2", true, "box1"},
		{"old sandbox is used", "box2 box1! a1:running@box2 a0:exited@box1", true, ""},
		{"last sandbox stays", "box1! a0:exited@box1", true, ""},
		{"two ended sandboxes", "box2! box1!", true, "box1"},
		{"gone", "box2! box1! a1:exited@box2 a0:exited@box1", false, "a1 a0 box2 box1"},
		{"gone, created", "box1! a0:created@box1", false, "a0 box1"},
		{"gone, one runs", "box1 a1:running@box1 b0:exited@box1", false, "b0"},
		{"gone, lost", "box1! a1:unknown@box1", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			what := selectGarbage(pod("u", c.pod), c.known)
			var got []string
			for _, c := range slices.Concat(what.Containers, what.Sandboxes) {
				got = append(got, c.ID.ID)
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// world is everything that a node has of its pods.
type world struct {
	pods    []*runtimestate.RunningPod
	removed []string
	dirs    []types.UID
	groups  map[types.UID]corev1.PodQOSClass
	fail    error
	told    []string
	hold    func(uid types.UID) // called before a pod is removed, if not nil
}

func (w *world) Pods(context.Context) ([]*runtimestate.RunningPod, error) { return w.pods, w.fail }

func (w *world) Pod(_ context.Context, uid types.UID) (*runtimestate.RunningPod, error) {
	for _, p := range w.pods {
		if p.UID == uid {
			return p, w.fail
		}
	}
	return nil, w.fail
}

func (w *world) RemovePod(_ context.Context, what *runtimestate.RunningPod) error {
	if what.UID == "stuck" {
		return errors.New("stuck")
	}
	if w.hold != nil {
		w.hold(what.UID)
	}
	w.removed = append(w.removed, fmt.Sprintf("runtime %s: %d", what.UID, len(what.Containers)+len(what.Sandboxes)))
	return nil
}

type directories struct{ *world }

func (d directories) Pods() ([]types.UID, error) { return d.dirs, nil }
func (d directories) RemovePodDir(_ context.Context, uid types.UID) error {
	d.removed = append(d.removed, "directory "+string(uid))
	return nil
}

type groups struct{ *world }

func (g groups) Pods() (map[types.UID]corev1.PodQOSClass, error) { return g.world.groups, nil }
func (g groups) Destroy(uid types.UID, class corev1.PodQOSClass) error {
	g.removed = append(g.removed, fmt.Sprintf("group %s %s", uid, class))
	return nil
}

func newCollector(w *world, logs string, ready bool) *Collector {
	return New(Options{
		State: w, Runtime: w, Directories: directories{w}, Cgroups: groups{w}, PodLogsDir: logs,
		Known:   func(uid types.UID) bool { return strings.HasPrefix(string(uid), "known") },
		Evicted: func(uid types.UID) bool { return uid == "known-evicted" },
		Ended:   func(uid types.UID) bool { return uid == "known-evicted" || uid == "known-ended" },
		Ready:   func() bool { return ready },
		Failed:  func(reason, message string) { w.told = append(w.told, reason+": "+message) },
		Clock:   clock.RealClock{}, Logger: zap.NewNop(),
	})
}

func TestCollect(t *testing.T) {
	logs := t.TempDir()
	for _, file := range []string{
		"ns_known_known/a/0.log", "ns_known_known/a/0.log.20260101-000000.gz", "ns_known_known/a/1.log", "ns_known_known/a/10.log",
		"ns_gone_gone/a/0.log", "ns_runs_runs/a/0.log", "ns_stuck_stuck/a/0.log", "other/file",
		"ns_e_known-evicted/a/0.log", "ns_known-ended_known-ended/a/0.log",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(logs, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(logs, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{
		pods: []*runtimestate.RunningPod{
			pod("known", "box1 a2:running@box1 a1:exited@box1 a0:exited@box1"),
			pod("gone", "box1! a0:exited@box1"),
			pod("runs", "box1 a0:running@box1"),
			pod("stuck", "box1! a0:exited@box1"),
			pod("known-evicted", "box1! a0:exited@box1"),
			pod("known-ended", "box1! a0:exited@box1"),
		},
		dirs: []types.UID{"known", "gone", "runs", "stuck", "forgotten"},
		groups: map[types.UID]corev1.PodQOSClass{"known2": corev1.PodQOSBurstable, "gone": corev1.PodQOSBestEffort, "runs": corev1.PodQOSBurstable,
			"stuck": corev1.PodQOSBurstable},
	}
	if err := newCollector(w, logs, false).Collect(t.Context()); err != nil || len(w.removed) > 0 {
		t.Fatalf("before the sources are ready: %v, removed %v", err, w.removed)
	}
	err := newCollector(w, logs, true).Collect(t.Context())
	if err == nil || err.Error() != "stuck" {
		t.Errorf("err = %v, want what failed", err)
	}
	if !slices.Equal(w.told, []string{"ContainerGCFailed: stuck"}) {
		t.Errorf("told %q", w.told)
	}
	want := []string{"directory forgotten", "directory gone", "group gone BestEffort", "runtime gone: 2", "runtime known-evicted: 2", "runtime known: 1"}
	slices.Sort(want)
	slices.Sort(w.removed)
	if !slices.Equal(w.removed, want) {
		t.Errorf("removed\n%v\nwant\n%v", w.removed, want)
	}
	if got := logsIn(logs); !slices.Equal(got, []string{"ns_known-ended_known-ended/a/0.log", "ns_known_known/a/1.log", "ns_known_known/a/10.log",
		"ns_runs_runs/a/0.log", "other/file"}) {
		t.Errorf("logs left\n%v", got)
	}
	w.removed = nil
	if err := newCollector(w, logs, true).Reclaim(t.Context()); err == nil || !slices.Contains(w.removed, "runtime known-ended: 2") {
		t.Errorf("%v; for want of space only %q were removed", err, w.removed)
	}
	if got := logsIn(logs); slices.Contains(got, "ns_known-ended_known-ended/a/0.log") || !slices.Contains(got, "ns_known_known/a/1.log") {
		t.Errorf("logs left for want of space\n%v", got)
	}
}

// An eviction waits for what its own pod left, and for nothing else.
func TestCollectPod(t *testing.T) {
	logs := t.TempDir()
	for _, dir := range []string{"ns_e_known-evicted", "ns_gone_gone", "ns_known_known"} {
		if err := os.Mkdir(filepath.Join(logs, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(logs, dir, "0.log"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{
		pods: []*runtimestate.RunningPod{
			pod("stuck", "box1! a0:exited@box1"), pod("gone", "box1! a0:exited@box1"), pod("known", "box1! a1:exited@box1 a0:exited@box1"),
			pod("known-evicted", "box1! a0:exited@box1"),
		},
		dirs: []types.UID{"gone"}, groups: map[types.UID]corev1.PodQOSClass{"gone": corev1.PodQOSBestEffort},
	}
	c := newCollector(w, logs, true)
	for _, uid := range []types.UID{"known", "known-evicted"} {
		if err := c.CollectPod(t.Context(), uid); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"runtime known-evicted: 2"}; !slices.Equal(w.removed, want) {
		t.Errorf("removed %q, want %q", w.removed, want)
	}
	if got := logsIn(logs); !slices.Equal(got, []string{"ns_gone_gone/0.log", "ns_known_known/0.log"}) {
		t.Errorf("logs left %q", got)
	}
}

// An eviction does not wait for a round, which may be busy with another pod for long.
func TestCollectPodDuringARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := map[types.UID]chan struct{}{"gone": make(chan struct{}), "known-evicted": make(chan struct{})}
		var calls atomic.Int32
		w := &world{
			pods: []*runtimestate.RunningPod{pod("gone", "box1! a0:exited@box1"), pod("known-evicted", "box1! a0:exited@box1")},
			hold: func(uid types.UID) { calls.Add(1); <-gates[uid] },
		}
		c := newCollector(w, t.TempDir(), true)
		results := make(chan error, 3)
		start := func(collect func(context.Context) error) {
			go func() { results <- collect(t.Context()) }()
			synctest.Wait()
		}
		evicted := func(ctx context.Context) error { return c.CollectPod(ctx, "known-evicted") }
		start(c.Collect)
		start(evicted)
		start(evicted)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d pods are being removed, want two at the same time, each once", n)
		}
		close(gates["known-evicted"])
		if err := errors.Join(<-results, <-results); err != nil {
			t.Error(err)
		}
		if want := []string{"runtime known-evicted: 2", "runtime known-evicted: 2"}; !slices.Equal(w.removed, want) {
			t.Errorf("removed %q while the round is busy, want %q", w.removed, want)
		}
		close(gates["gone"])
		if err := <-results; err != nil {
			t.Error(err)
		}
	})
}

// The eviction has one goroutine, which must not stand still with a round that does.
func TestWhoCantWaitForARoundGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		w := &world{pods: []*runtimestate.RunningPod{pod("known-evicted", "box1! a0:exited@box1")}, hold: func(types.UID) { <-gate }}
		c := newCollector(w, t.TempDir(), true)
		first := make(chan error, 1)
		go func() { first <- c.Collect(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range []error{c.Reclaim(ctx), c.CollectPod(ctx, "known-evicted")} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while the runtime hangs: %v", err)
			}
		}
		close(gate)
		if err := errors.Join(<-first, c.Reclaim(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// logsIn are the files below a directory.
func logsIn(logs string) (left []string) {
	_ = filepath.WalkDir(logs, func(path string, e os.DirEntry, _ error) error {
		if !e.IsDir() {
			rel, _ := filepath.Rel(logs, path)
			left = append(left, rel)
		}
		return nil
	})
	return left
}

func TestRunGoesRoundOnTimeAndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{fail: errors.New("the runtime is away")} // an error does not end the loop
		var rounds atomic.Int32
		c := newCollector(w, t.TempDir(), true)
		c.Ready = func() bool { rounds.Add(1); return true }
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		if n := rounds.Load(); n != 0 {
			t.Errorf("%d rounds before it was asked", n)
		}
		c.CollectSoon()
		synctest.Wait()
		if rounds.Load() != 1 {
			t.Errorf("%d rounds after Soon, want 1", rounds.Load())
		}
		<-time.After(2*interval + time.Second) // the bubble's clock
		synctest.Wait()
		if rounds.Load() != 3 {
			t.Errorf("%d rounds after two intervals, want 3", rounds.Load())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
