package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

func apiPod(uid string, change func(*core.Pod)) *core.Pod {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-" + uid, UID: types.UID(uid)}}
	if change != nil {
		change(pod)
	}
	return pod
}

// taken are the updates that are there now, as "OP:uid,uid".
func taken(m *Mux) []string {
	var got []string
	for {
		select {
		case u := <-m.Updates():
			var uids []string
			for _, pod := range u.Pods {
				uids = append(uids, string(pod.UID))
			}
			slices.Sort(uids)
			got = append(got, fmt.Sprintf("%s:%s", u.Op, strings.Join(uids, ",")))
		default:
			return got
		}
	}
}

func TestMuxSendsTheDifference(t *testing.T) {
	m := NewMux(clock.RealClock{}, zap.NewNop())
	now := metav1.Now()
	for _, step := range []struct {
		name string
		pods []*core.Pod
		want []string
	}{
		{"the first, empty state is told", nil, []string{"ADD:"}},
		{"nothing new", nil, nil},
		{"new pods", []*core.Pod{apiPod("a", nil), apiPod("b", nil)}, []string{"ADD:a,b"}},
		{"equal pods", []*core.Pod{apiPod("a", nil), apiPod("b", nil)}, nil},
		{"a spec changed", []*core.Pod{apiPod("a", func(p *core.Pod) { p.Spec.Hostname = "h" }), apiPod("b", nil)}, []string{"UPDATE:a"}},
		{"a status changed", []*core.Pod{
			apiPod("a", func(p *core.Pod) { p.Spec.Hostname = "h" }),
			apiPod("b", func(p *core.Pod) { p.Status.Phase = corev1.PodRunning }),
		}, []string{"RECONCILE:b"}},
		{"deletion asked, one gone, one new", []*core.Pod{
			apiPod("a", func(p *core.Pod) { p.Spec.Hostname = "h"; p.DeletionTimestamp = &now }), apiPod("c", nil),
		}, []string{"REMOVE:b", "ADD:c", "DELETE:a"}},
		{"a name that is taken is left out", []*core.Pod{
			apiPod("a", func(p *core.Pod) { p.Spec.Hostname = "h"; p.DeletionTimestamp = &now }), apiPod("c", nil),
			apiPod("d", func(p *core.Pod) { p.Name = "pod-c" }),
		}, nil},
		{"a UID that is taken is left out", []*core.Pod{
			apiPod("a", func(p *core.Pod) { p.Spec.Hostname = "h"; p.DeletionTimestamp = &now }), apiPod("c", nil),
			apiPod("c", func(p *core.Pod) { p.Name = "pod-e" }),
		}, nil},
		{"another pod of that UID", []*core.Pod{
			apiPod("a", func(p *core.Pod) { p.Spec.Hostname = "h"; p.DeletionTimestamp = &now }),
			apiPod("c", func(p *core.Pod) { p.Name = "pod-e" }),
		}, []string{"REMOVE:c", "ADD:c"}},
		{"all gone", nil, []string{"REMOVE:a,c"}},
	} {
		m.Set(t.Context(), core.ApiserverSource, step.pods)
		if got := taken(m); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}

// A file is read every 20 seconds: an error in it is logged once.
func TestIgnoredPodsAreToldOfOnce(t *testing.T) {
	sink, logs := observer.New(zap.WarnLevel)
	m := NewMux(clock.RealClock{}, zap.New(sink))
	var told []string
	m.Warn = func(pod *core.Pod, reason, message string) {
		told = append(told, string(pod.UID)+": "+reason+": "+message)
	}
	twin := func(uid string) *core.Pod { return apiPod(uid, func(p *core.Pod) { p.Name = "pod-a" }) }
	for _, step := range []struct {
		name string
		pods []*core.Pod
		want int
	}{
		{"two of a name", []*core.Pod{twin("a"), twin("b")}, 1},
		{"the same two", []*core.Pod{twin("a"), twin("b")}, 0},
		{"a third", []*core.Pod{twin("a"), twin("b"), twin("c")}, 1},
		{"one of them gone", []*core.Pod{twin("a"), twin("c")}, 0},
		{"and there again", []*core.Pod{twin("a"), twin("b"), twin("c")}, 1},
		{"one of a UID that is taken", []*core.Pod{twin("a"), apiPod("a", nil), apiPod("a", func(p *core.Pod) { p.Name = "pod-z" })}, 2},
	} {
		m.Set(t.Context(), core.FileSource, step.pods)
		if got := len(logs.TakeAll()); got != step.want {
			t.Errorf("%s: %d lines, want %d", step.name, got, step.want)
		}
	}
	want := `b: FailedValidation: Error validating pod pod-a_ns(b) from file due to duplicate pod name "pod-a", ignoring`
	if len(told) != 4 || told[0] != want { // none for a UID that is taken
		t.Errorf("events: %q, want %q first of 4", told, want)
	}
}

func TestSourcesDoNotTouchEachOther(t *testing.T) {
	m := NewMux(clock.RealClock{}, zap.NewNop())
	given := apiPod("a", nil)
	m.Set(t.Context(), core.FileSource, []*core.Pod{given})
	m.Set(t.Context(), core.ApiserverSource, nil)
	if got := taken(m); !slices.Equal(got, []string{"ADD:a", "ADD:"}) {
		t.Errorf("updates %v", got)
	}
	if given.Annotations != nil {
		t.Error("the source's own object was changed")
	}
	ready := NewReady(core.FileSource, core.ApiserverSource)
	ready.Add(core.FileSource)
	if ready.All() || !slices.Equal(ready.Missing(), []string{core.ApiserverSource}) {
		t.Errorf("missing %v", ready.Missing())
	}
	ready.Add(core.ApiserverSource)
	if !ready.All() {
		t.Error("not ready though all sources were seen")
	}
}

const manifest = `
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: app
    image: registry.example/app:1
    resources: {limits: {cpu: 100m}}
`

func run(t *testing.T, f func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("source ended with %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// write replaces the file at path atomically, through a hidden file, because
// the directory may be read at any moment.
func write(t *testing.T, path, text string) {
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(hidden, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(hidden, path); err != nil {
		t.Fatal(err)
	}
}

func TestManifestDirectory(t *testing.T) {
	dir := t.TempDir()
	m := NewMux(clock.RealClock{}, zap.NewNop())
	file := &File{Path: dir, NodeName: "Node-1", Period: time.Hour, Clock: clock.RealClock{}, Logger: zap.NewNop()}
	write(t, filepath.Join(dir, "web.yaml"), manifest)
	run(t, func(ctx context.Context) error { return file.Run(ctx, m) })

	added := <-m.Updates()
	pod := added.Pods[0]
	if added.Op != core.ADD || pod.Name != "web-node-1" || pod.Namespace != "default" || len(pod.UID) != 32 {
		t.Errorf("%s of %s/%s uid %q", added.Op, pod.Namespace, pod.Name, pod.UID)
	}
	if pod.Annotations[core.ConfigHashAnnotation] != string(pod.UID) || pod.Annotations[core.ConfigSourceAnnotation] != core.FileSource {
		t.Errorf("annotations %v", pod.Annotations)
	}
	c := pod.Spec.Containers[0]
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || c.ImagePullPolicy != corev1.PullIfNotPresent || c.Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("defaults are missing: %s %s %v", pod.Spec.RestartPolicy, c.ImagePullPolicy, c.Resources.Requests)
	}

	write(t, filepath.Join(dir, "web.yaml"), strings.Replace(manifest, "app:1", "app:2", 1))
	if u := <-m.Updates(); u.Op != core.REMOVE || u.Pods[0].UID != pod.UID {
		t.Errorf("a changed manifest is another pod: %s", u.Op)
	}
	if u := <-m.Updates(); u.Op != core.ADD || u.Pods[0].UID == pod.UID {
		t.Errorf("a changed manifest is another pod: %s", u.Op)
	}
	// A broken file does not affect a good one beside it.
	write(t, filepath.Join(dir, "web.yaml"), "{")
	write(t, filepath.Join(dir, "more.yaml"), strings.Replace(manifest, "name: web", "name: more", 1))
	if u := <-m.Updates(); u.Op != core.ADD || u.Pods[0].Name != "more-node-1" {
		t.Errorf("%s %v", u.Op, u.Pods[0].Name)
	}
	if err := os.Remove(filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	if u := <-m.Updates(); u.Op != core.REMOVE || u.Pods[0].Name != "web-node-1" {
		t.Errorf("%s %v", u.Op, u.Pods[0].Name)
	}
}

// If all of root's inotify instances are in use, manifests are read once a
// period, and watched as soon as that is possible.
func TestManifestsWithoutAWatch(t *testing.T) {
	dir := t.TempDir()
	m := NewMux(clock.RealClock{}, zap.NewNop())
	step := testclock.NewFakeClock(time.Now())
	var exhausted atomic.Bool
	exhausted.Store(true)
	file := &File{Path: dir, NodeName: "n", Period: time.Minute, Clock: step, Logger: zap.NewNop()}
	file.newWatcher = func() (*fsnotify.Watcher, error) {
		if exhausted.Load() {
			return nil, syscall.EMFILE
		}
		return fsnotify.NewWatcher()
	}
	write(t, filepath.Join(dir, "web.yaml"), manifest)
	run(t, func(ctx context.Context) error { return file.Run(ctx, m) })
	named := func(name string) string { return strings.Replace(manifest, "name: web", "name: "+name, 1) }
	expect := func(name string, u core.PodUpdate) {
		t.Helper()
		if u.Op != core.ADD || len(u.Pods) != 1 || u.Pods[0].Name != name+"-n" {
			t.Errorf("%s %v, want %s", u.Op, u.Pods, name)
		}
	}
	later := func() core.PodUpdate {
		for {
			select {
			case u := <-m.Updates():
				return u
			default:
				step.Step(file.Period)
			}
		}
	}
	expect("web", <-m.Updates())
	write(t, filepath.Join(dir, "more.yaml"), named("more"))
	expect("more", later())
	exhausted.Store(false)
	write(t, filepath.Join(dir, "last.yaml"), named("last"))
	expect("last", later())
	write(t, filepath.Join(dir, "watched.yaml"), named("watched"))
	expect("watched", <-m.Updates())
}

// A manifest that goes and is back before anyone has looked restarts its pod, as if somebody had.
func TestManifestMovedAwayAndBack(t *testing.T) {
	dir := t.TempDir()
	m := NewMux(clock.RealClock{}, zap.NewNop())
	step := testclock.NewFakeClock(time.Now())
	path := filepath.Join(dir, "web.yaml")
	calls, moved := 0, make(chan struct{})
	file := &File{Path: dir, NodeName: "n", Period: time.Minute, Clock: step, Logger: zap.NewNop()}
	file.newWatcher = func() (*fsnotify.Watcher, error) {
		if calls++; calls == 1 {
			return nil, syscall.EMFILE
		}
		watcher, err := fsnotify.NewBufferedWatcher(10)
		if err != nil {
			return nil, err
		}
		away := filepath.Join(t.TempDir(), "web.yaml")
		if err := errors.Join(watcher.Add(dir), os.Rename(path, away), os.Rename(away, path)); err != nil {
			t.Error(err)
		}
		for len(watcher.Events) < 2 {
			runtime.Gosched()
		}
		close(moved)
		return watcher, nil
	}
	write(t, path, manifest)
	run(t, func(ctx context.Context) error { return file.Run(ctx, m) })
	first := <-m.Updates()
	for !step.HasWaiters() {
		runtime.Gosched()
	}
	step.Step(file.Period)
	<-moved
	var got []string
	for _, name := range []string{"more", "last"} { // what had happened before one of them is known with the other
		write(t, filepath.Join(dir, name+".yaml"), strings.Replace(manifest, "name: web", "name: "+name, 1))
		for !slices.Contains(got, "ADD "+name+"-n") {
			u := <-m.Updates()
			for _, pod := range u.Pods {
				got = append(got, fmt.Sprintf("%s %s", u.Op, pod.Name))
				if pod.Name == "web-n" && pod.UID != first.Pods[0].UID {
					t.Error("it is another pod")
				}
			}
		}
	}
	if gone, back := slices.Index(got, "REMOVE web-n"), slices.Index(got, "ADD web-n"); gone < 0 || back < gone {
		t.Errorf("%q", got)
	}
}

// Whatever is in the directory, each bad file is skipped with its reason, none
// holds up the others, and the good one is used.
func TestHostileManifests(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 9), ","))
	}
	huge, err := os.Create(at("huge.yaml"))
	if err == nil {
		err = errors.Join(huge.Truncate(maxManifest+1), huge.Close())
	}
	if err := errors.Join(err, syscall.Mkfifo(at("pipe.yaml"), 0o600), os.Mkdir(at("directory.yaml"), 0o700), os.Symlink("/dev/zero", at("endless.yaml")),
		os.Symlink(at("round.yaml"), at("round.yaml")), os.Symlink("/etc/shadow", at("elsewhere.yaml")), os.Symlink(at("none"), at("nowhere.yaml"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"binary.yaml": "\x00\xff\xfe{", "bomb.yaml": bomb, "deep.json": strings.Repeat("[", 1<<20), "deep.yaml": strings.Repeat("- ", 1<<16) + "x",
		"good.yaml": manifest, "zwice.yaml": manifest + "# the same pod in another file\n", ".hidden.yaml": "{",
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := NewMux(clock.RealClock{}, zap.NewNop())
	watched, logs := observer.New(zap.WarnLevel)
	file := &File{Path: dir, NodeName: "n", Period: time.Hour, Clock: clock.RealClock{}, Logger: zap.New(watched)}
	run(t, func(ctx context.Context) error { return file.Run(ctx, m) })
	if u := <-m.Updates(); len(u.Pods) != 1 || u.Pods[0].Name != "web-n" {
		t.Errorf("taken: %v", u.Pods)
	}
	why := map[string]string{}
	for _, entry := range logs.FilterMessage("manifest ignored").All() {
		fields := entry.ContextMap()
		why[filepath.Base(fmt.Sprint(fields["file"]))] = fmt.Sprint(fields["error"])
	}
	for name, want := range map[string]string{
		"huge.yaml": "larger than", "pipe.yaml": "not a regular file", "endless.yaml": "not a regular file", "round.yaml": "too many levels of symbolic links",
		"elsewhere.yaml": "apiVersion", "binary.yaml": "YAML", "bomb.yaml": "", "deep.json": "", "deep.yaml": "",
	} {
		if reason, ignored := why[name]; !ignored || !strings.Contains(reason, want) || len(reason) > 1000 {
			t.Errorf("%s: ignored %t, for %.200q, want %q", name, ignored, reason, want)
		}
	}
}
