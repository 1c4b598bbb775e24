package eviction

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

func TestThresholds(t *testing.T) {
	thresholds, err := Settings{
		Hard:           map[string]string{"pid.available": "5%", "memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "100%"},
		Soft:           map[string]string{"memory.available": "1Gi"},
		SoftGrace:      map[string]string{"memory.available": "1m30s"},
		MinimumReclaim: map[string]string{"memory.available": "10Mi"},
	}.Thresholds()
	want := []Threshold{
		{Signal: MemoryAvailable, Value: Amount{Quantity: 100 << 20}, MinReclaim: Amount{Quantity: 10 << 20}},
		{Signal: MemoryAvailable, Value: Amount{Quantity: 1 << 30}, MinReclaim: Amount{Quantity: 10 << 20}, GracePeriod: 90 * time.Second},
		{Signal: PodsMemoryAvailable, Value: Amount{Quantity: 100 << 20}, MinReclaim: Amount{Quantity: 10 << 20}},
		{Signal: PIDAvailable, Value: Amount{Percentage: 0.05}},
	}
	if err != nil || !slices.Equal(thresholds, want) {
		t.Errorf("%+v, %v; want %+v", thresholds, err, want)
	}
	reserve := HardEvictionReservation(append(thresholds, Threshold{Signal: NodeFSAvailable, Value: Amount{Percentage: 0.1}}), 1<<30, 1000)
	if reserve.Memory().String() != "100Mi" || reserve.StorageEphemeral().Value() != 100 {
		t.Errorf("reserve %v", reserve)
	}
	if defaults, err := (Settings{Hard: DefaultHard()}).Thresholds(); err != nil || len(defaults) != 6 {
		t.Errorf("defaults %v, %v", defaults, err)
	}
	for want, settings := range map[string]Settings{
		"not known":               {Hard: map[string]string{"disk": "1Gi"}},
		"not known; there are":    {Hard: map[string]string{"allocatableMemory.available": "1Gi"}},
		"neither a quantity":      {Hard: map[string]string{"memory.available": "much"}},
		"neither":                 {Hard: map[string]string{"memory.available": "-1Gi"}},
		"not a percentage":        {Hard: map[string]string{"memory.available": "NaN%"}},
		"from 0% to 100%":         {Hard: map[string]string{"memory.available": "101%"}},
		"needs its grace period":  {Soft: map[string]string{"memory.available": "1Gi"}},
		"not a positive duration": {Soft: map[string]string{"memory.available": "1Gi"}, SoftGrace: map[string]string{"memory.available": "-1s"}},
		"no soft threshold for":   {SoftGrace: map[string]string{"memory.available": "1s"}},
		"evictionMinimumReclaim":  {MinimumReclaim: map[string]string{"memory.available": "x"}},
	} {
		if _, err := settings.Thresholds(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that says %q", settings, err, want)
		}
	}
}

// newPod has a memory request and a disk limit, "" for none.
func newPod(name string, priority int32, memoryRequest, diskLimit string) *core.Pod {
	c := core.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}}
	if memoryRequest != "" {
		c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(memoryRequest)
	}
	if diskLimit != "" {
		c.Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse(diskLimit)
	}
	grace := int64(30)
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority, Containers: []core.Container{c}, TerminationGracePeriodSeconds: &grace},
	}
}

func memory(bytes int64) *Usage {
	return &Usage{Memory: bytes, Inodes: bytes, Processes: bytes, Containers: map[string]Share{"main": {Memory: bytes}}}
}

func TestRank(t *testing.T) {
	pods := []*core.Pod{
		newPod("within", 0, "100", ""), newPod("important", 10, "", ""), newPod("above", 0, "100", ""),
		newPod("far-above", 0, "10", ""), newPod("within-more", 0, "100", ""),
	}
	usages := map[types.UID]*Usage{
		"within": memory(50), "important": memory(1000), "above": memory(150), "far-above": memory(120), "within-more": memory(60),
	}
	for signal, want := range map[Signal]string{
		MemoryAvailable:  "far-above above important within-more within",
		PIDAvailable:     "above far-above within-more within important",
		NodeFSInodesFree: "above far-above within-more within important",
	} {
		var names []string
		for _, pod := range rank(signal, Apart{}, pods, usages) {
			names = append(names, pod.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", signal, got, want)
		}
	}
}

// The event and the status of an eviction.
func TestBlame(t *testing.T) {
	short := Observation{Available: 50<<20 + 1}
	less := Threshold{Signal: MemoryAvailable, Value: Amount{Quantity: 100 << 20}}
	pod := newPod("p", 0, "1Mi", "")
	got, why := evictionMessage(less, short, pod, memory(2<<20))
	if want := "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container main was using 2Mi, request is 1Mi, has " +
		"larger consumption of memory. "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if want := map[string]string{"starved_resource": "memory", "offending_containers": "main", "offending_containers_usage": "2Mi"}; !maps.Equal(why.Annotations(),
		want) {
		t.Errorf("%v", why.Annotations())
	}
	pod.Spec.InitContainers = []core.Container{{Name: "side"}}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Mi")}}
	got, why = evictionMessage(less, short, pod, &Usage{Memory: 5 << 20, Containers: map[string]Share{"main": {Memory: 2 << 20}, "side": {Memory: 3 << 20}}})
	if !strings.Contains(got, "Pod p was using 5Mi, request is 3Mi, has larger consumption of memory. Container main") ||
		!strings.Contains(got, "Container side was using 3Mi, request is 0,") {
		t.Error(got)
	}
	if a := why.Annotations(); a["offending_pod"] != "p" || a["offending_pod_usage"] != "5Mi" || a["offending_containers"] != "main,side" ||
		a["offending_containers_usage"] != "2Mi,3Mi" {
		t.Errorf("%v", a)
	}
	_, why = evictionMessage(Threshold{Signal: PIDAvailable}, short, pod, memory(1))
	if want := map[string]string{"starved_resource": "pids", "offending_containers": "", "offending_containers_usage": ""}; !maps.Equal(why.Annotations(), want) {
		t.Errorf("%v", why.Annotations())
	}
}

// node is a node that runs short of what the test wants.
type node struct {
	*Manager
	clock     *clocktesting.FakeClock
	pods      []*core.Pod
	usages    map[types.UID]*Usage
	seen      map[Signal]Observation
	reclaim   func()
	reclaimed int
	images    bool // were reclaimed last
	changed   int
	evicted   []string
	verdicts  []Decision
	warned    []string
}

func newNode(t *testing.T, settings Settings) *node {
	t.Helper()
	thresholds, err := settings.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{clock: clocktesting.NewFakeClock(time.Now()), usages: map[types.UID]*Usage{}, seen: map[Signal]Observation{}, reclaim: func() {}}
	n.Manager = New(Options{
		Thresholds: thresholds, MaxPodGrace: 20, TransitionPeriod: 5 * time.Minute, Clock: n.clock, Logger: zap.NewNop(),
		Observe: func(context.Context) (map[Signal]Observation, error) { return n.seen, nil },
		Measure: func(context.Context, []*core.Pod, bool) (map[types.UID]*Usage, error) { return n.usages, nil },
		Pods:    func() []*core.Pod { return n.pods },
		Reclaim: func(_ context.Context, images bool) error {
			n.reclaimed++
			n.images = images
			n.reclaim()
			return nil
		},
		Evict: func(_ context.Context, pod *core.Pod, v Decision) {
			n.evicted, n.verdicts = append(n.evicted, pod.Name), append(n.verdicts, v)
			n.pods = slices.DeleteFunc(n.pods, func(p *core.Pod) bool { return p == pod })
		},
		Changed: func() { n.changed++ },
		Warn:    func(reason, message string) { n.warned = append(n.warned, reason+": "+message) },
	})
	return n
}

func (n *node) add(pod *core.Pod, usage *Usage) {
	n.pods = append(n.pods, pod)
	n.usages[pod.UID] = usage
}

// step lets time pass, checks the node once, and returns who was evicted.
func (n *node) step(t *testing.T, after time.Duration) string {
	t.Helper()
	n.clock.Step(after)
	n.evicted = nil
	if err := n.Synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(n.evicted, " ")
}

func TestShortOfMemory(t *testing.T) {
	n := newNode(t, Settings{
		Hard:           map[string]string{"memory.available": "100"},
		Soft:           map[string]string{"memory.available": "200"},
		SoftGrace:      map[string]string{"memory.available": "1m"},
		MinimumReclaim: map[string]string{"memory.available": "50"},
	})
	static := newPod("static", 0, "", "")
	static.Annotations = map[string]string{core.ConfigSourceAnnotation: core.FileSource}
	n.add(static, memory(900))
	n.add(newPod("system", core.SystemCriticalPriority, "", ""), memory(900))
	n.add(newPod("a", 0, "", ""), memory(10))
	n.add(newPod("b", 0, "", ""), memory(20))
	n.add(newPod("c", 0, "", ""), memory(5))
	look := func(available int64, after time.Duration, want string, under bool) {
		t.Helper()
		n.seen[MemoryAvailable] = Observation{Available: available, Capacity: 1000}
		if got := n.step(t, after); got != want {
			t.Errorf("with %d available %q was ended, want %q", available, got, want)
		}
		if n.IsUnderPressure(corev1.NodeMemoryPressure) != under {
			t.Errorf("with %d available, MemoryPressure is %v", available, !under)
		}
	}
	look(1000, 0, "", false)
	look(150, 10*time.Second, "", true) // short, but not for long enough
	look(150, 50*time.Second, "", true)
	look(150, 10*time.Second, "b", true)
	if want := []string{"EvictionThresholdMet: Attempting to reclaim memory"}; !slices.Equal(n.warned, want) {
		t.Errorf("people read of the node %q, want %q", n.warned, want)
	}
	if v := n.verdicts[0]; v.Grace != 20 || v.Signal != "memory.available" || n.changed != 1 {
		t.Errorf("verdict %+v, %d changes", v, n.changed)
	}
	look(249, 10*time.Second, "a", true) // not enough was reclaimed yet
	look(250, 10*time.Second, "", true)
	look(99, time.Minute, "c", true) // a hard threshold acts at once
	if v := n.verdicts[2]; v.Grace != 1 {
		t.Errorf("verdict %+v", v)
	}
	look(99, 10*time.Second, "", true) // nobody is left to evict
	look(300, 4*time.Minute, "", true)
	look(300, time.Minute, "", false)
	if n.reclaimed != 0 || n.changed != 2 {
		t.Errorf("%d times disk was reclaimed, %d changes of conditions", n.reclaimed, n.changed)
	}
}

func TestShortOfDisk(t *testing.T) {
	n := newNode(t, Settings{Hard: map[string]string{"nodefs.available": "10%"}})
	n.add(newPod("a", 0, "", ""), &Usage{Disk: 5})
	n.add(newPod("b", 0, "", ""), &Usage{Disk: 6})
	n.seen[NodeFSAvailable] = Observation{Available: 9, Capacity: 100}
	n.reclaim = func() { n.seen[NodeFSAvailable] = Observation{Available: 10, Capacity: 100} }
	if got := n.step(t, 0); got != "" || n.reclaimed != 1 || !n.IsUnderPressure(corev1.NodeDiskPressure) {
		t.Errorf("%q was evicted though reclaiming was enough; reclaimed %d times", got, n.reclaimed)
	}
	n.reclaim = func() {}
	n.seen[NodeFSAvailable] = Observation{Available: 9, Capacity: 100}
	if got := n.step(t, 10*time.Second); got != "b" {
		t.Errorf("%q was ended, want b", got)
	}
	delete(n.seen, NodeFSAvailable) // who knows whether it is still short?
	if got := n.step(t, 10*time.Second); got != "" || !n.IsUnderPressure(corev1.NodeDiskPressure) {
		t.Errorf("%q was ended though how much is left is not known", got)
	}
	n.seen[NodeFSAvailable] = Observation{Available: 9, Capacity: 100}
	n.reclaim = func() { delete(n.seen, NodeFSAvailable) }
	if got := n.step(t, 10*time.Second); got != "" {
		t.Errorf("%q was ended though how much is left is not known any more", got)
	}
	n.seen[NodeFSAvailable] = Observation{Available: 9, Capacity: 100}
	n.reclaim = func() {}
	if got := n.step(t, 10*time.Second); got != "a" {
		t.Errorf("%q was ended, want a", got)
	}
}

// On a node with two disks, that pod goes which fills the one that is full, and images are removed
// only where that helps.
func TestShortOfOneOfTwoDisks(t *testing.T) {
	both, onlyImages := Apart{Images: true, Layers: true}, Apart{Images: true}
	for _, c := range []struct {
		disk   string
		apart  Apart
		want   string
		images bool
	}{
		{"nodefs", Apart{}, "most", true},
		{"nodefs", both, "volumes", false},
		{"nodefs", onlyImages, "most", false},
		{"imagefs", Apart{}, "most", true},
		{"imagefs", both, "layers", true},
		{"imagefs", onlyImages, "first", true}, // all of them have as little there
	} {
		for _, of := range []string{".available", ".inodesFree"} {
			n := newNode(t, Settings{Hard: map[string]string{c.disk + of: "10%"}})
			n.add(newPod("first", 0, "", ""), &Usage{Disk: 1, Inodes: 1})
			n.add(newPod("layers", 0, "", ""), &Usage{Disk: 50, Inodes: 50, Layer: Layer{40, 40}})
			n.add(newPod("volumes", 0, "", ""), &Usage{Disk: 60, Inodes: 60, Layer: Layer{20, 20}})
			n.add(newPod("most", 0, "", ""), &Usage{Disk: 65, Inodes: 65, Layer: Layer{30, 30}})
			n.seen[ImageFSAvailable] = Observation{Available: 90, Capacity: 100, Apart: c.apart}
			n.seen[Signal(c.disk+of)] = Observation{Available: 9, Capacity: 100, Apart: c.apart}
			if got := n.step(t, 0); got != c.want || n.images != c.images || n.reclaimed != 1 {
				t.Errorf("%s%s, %+v: %q was evicted, want %q; images were removed: %v", c.disk, of, c.apart, got, c.want, n.images)
			}
		}
	}
}

// A runtime that is too slow, for once, to say where its images are has them where they were.
func TestDisksThatWereKnownAsTwo(t *testing.T) {
	n := newNode(t, Settings{Hard: map[string]string{"nodefs.available": "10%"}})
	n.seen[NodeFSAvailable] = Observation{Available: 90, Capacity: 100}
	n.seen[ImageFSAvailable] = Observation{Available: 90, Capacity: 100, Apart: Apart{Images: true, Layers: true}}
	n.add(newPod("layers", 0, "", ""), &Usage{Disk: 60, Layer: Layer{Bytes: 50}})
	n.add(newPod("volumes", 0, "", ""), &Usage{Disk: 40})
	if got := n.step(t, 0); got != "" {
		t.Errorf("%q was evicted from a node with room", got)
	}
	delete(n.seen, ImageFSAvailable)
	n.seen[NodeFSAvailable] = Observation{Available: 9, Capacity: 100}
	if got := n.step(t, 0); got != "volumes" || n.images || n.reclaimed != 1 {
		t.Errorf("%q was evicted; images were removed: %v", got, n.images)
	}
}

// What can't be observed, such as a file system that hangs, hides no shortage of anything else.
func TestAnObservationThatFailsHidesNothing(t *testing.T) {
	n := newNode(t, Settings{Hard: map[string]string{"memory.available": "100"}})
	n.add(newPod("a", 0, "", ""), memory(10))
	n.Observe = func(context.Context) (map[Signal]Observation, error) {
		return map[Signal]Observation{MemoryAvailable: {Available: 1, Capacity: 1000}}, errors.New("file system does not answer")
	}
	if err := n.Synchronize(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(n.evicted, []string{"a"}) {
		t.Errorf("%q were ended", n.evicted)
	}
}

func TestAdmit(t *testing.T) {
	n := newNode(t, Settings{Hard: map[string]string{"memory.available": "100", "pid.available": "10"}})
	tolerating := newPod("tolerating", 0, "", "")
	tolerating.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}
	pods := []*core.Pod{newPod("best-effort", 0, "", ""), newPod("burstable", 0, "1Mi", ""), tolerating, newPod("critical", core.SystemCriticalPriority, "", ""),
		newPod("taken", 0, "", "")}
	pods[4].Status.StartTime = &metav1.Time{Time: n.clock.Now()}
	check := func(want ...string) {
		t.Helper()
		n.step(t, 0)
		for i, pod := range pods {
			if got := n.Admit(pod); got != want[i] {
				t.Errorf("%s: %q, want %q", pod.Name, got, want[i])
			}
		}
	}
	check("", "", "", "", "")
	n.seen[MemoryAvailable] = Observation{Available: 1, Capacity: 1000}
	check("The node had condition: [MemoryPressure]. ", "", "", "", "")
	n.seen[PIDAvailable] = Observation{Available: 1, Capacity: 1000}
	both := "The node had condition: [MemoryPressure PIDPressure]. "
	check(both, both, both, "", "")
}
