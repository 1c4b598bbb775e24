package eviction

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// slowDisks makes a node's disks take as long to measure as the test says; what is asked of memory is
// answered at once. It counts the measurements of disks.
func slowDisks(n *node, answers <-chan map[types.UID]*Usage) *atomic.Int32 {
	measured := new(atomic.Int32)
	n.Measure = func(ctx context.Context, _ []*core.Pod, disk bool) (map[types.UID]*Usage, error) {
		if !disk {
			return n.usages, nil
		}
		measured.Add(1)
		select {
		case usages := <-answers:
			return usages, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return measured
}

// However long it takes to walk through what a pod has on disk, the node sees that it is short of
// memory, and the pod is ended when the walk is over.
func TestSlowDisksHideNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, Settings{Hard: map[string]string{"memory.available": "100"}})
		n.LongestRest = 5 * time.Minute
		n.add(newPod("limited", 0, "", "1Mi"), memory(1))
		n.add(newPod("large", 0, "", ""), memory(1<<20))
		answers := make(chan map[types.UID]*Usage)
		measured := slowDisks(n, answers)
		n.seen[MemoryAvailable] = Observation{Available: 1000, Capacity: 1000}
		if got := n.step(t, 0); got != "" {
			t.Errorf("ended: %s", got)
		}
		n.seen[MemoryAvailable] = Observation{Available: 1, Capacity: 1000}
		if got := n.step(t, 20*time.Second); got != "large" || !n.IsUnderPressure(corev1.NodeMemoryPressure) {
			t.Errorf("ended: %q, want the largest", got)
		}
		n.seen[MemoryAvailable] = Observation{Available: 1000, Capacity: 1000}
		n.add(newPod("began since", 0, "", "1Mi"), memory(1))
		n.add(newPod("still fits", 0, "", "1Mi"), memory(1))
		answers <- map[types.UID]*Usage{"limited": {Disk: 1<<20 + 1}, "still fits": {Disk: 1 << 20}}
		synctest.Wait()
		if got := n.step(t, 0); got != "limited" {
			t.Errorf("ended: %q, want the one above its limit", got)
		}
		// The disk has a rest nine times as long as the walk was.
		if n.step(t, 9*20*time.Second-1); measured.Load() != 1 {
			t.Errorf("measured %d times", measured.Load())
		}
		if n.step(t, 1); measured.Load() != 2 {
			t.Errorf("measured %d times after the rest", measured.Load())
		}
		n.clock.Step(time.Hour)
		answers <- map[types.UID]*Usage{}
		synctest.Wait()
		n.step(t, 0)
		if n.step(t, n.LongestRest-1); measured.Load() != 2 {
			t.Errorf("measured %d times", measured.Load())
		}
		if n.step(t, 1); measured.Load() != 3 {
			t.Errorf("measured %d times after the longest rest", measured.Load())
		}
		n.limits.abandon()
	})
}

// A node that is short of disk goes on looking at its memory while it finds out who has filled the disk.
func TestSlowDisksThatAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, Settings{Hard: map[string]string{"nodefs.available": "10%", "memory.available": "100"}})
		n.LongestRest = time.Hour
		n.add(newPod("large", 0, "", ""), memory(1<<20))
		n.add(newPod("fills", 0, "", ""), memory(1))
		answers := make(chan map[types.UID]*Usage)
		measured := slowDisks(n, answers)
		n.seen[MemoryAvailable] = Observation{Available: 1000, Capacity: 1000}
		n.seen[NodeFSAvailable] = Observation{Available: 9, Capacity: 100}
		if got := n.step(t, 0); got != "" {
			t.Errorf("ended: %q before it was known who has filled the disk", got)
		}
		n.seen[MemoryAvailable] = Observation{Available: 1, Capacity: 1000}
		if got := n.step(t, time.Minute); got != "large" {
			t.Errorf("ended: %q, want the one with most memory", got)
		}
		n.seen[MemoryAvailable] = Observation{Available: 1000, Capacity: 1000}
		n.add(newPod("began since", 0, "", ""), nil)
		answers <- map[types.UID]*Usage{"large": {Disk: 9}, "fills": {Disk: 5}}
		synctest.Wait()
		if got := n.step(t, 10*time.Second); got != "fills" || measured.Load() != 1 {
			t.Errorf("ended: %q after %d measurements, want the one that fills the disk", got, measured.Load())
		}
		// Who had filled it is not who fills it when it is full again, for which nobody has to wait.
		n.add(newPod("left", 0, "", ""), &Usage{})
		n.step(t, 10*time.Second)
		n.seen[NodeFSAvailable] = Observation{Available: 90, Capacity: 100}
		n.step(t, 10*time.Second)
		n.seen[NodeFSAvailable] = Observation{Available: 9, Capacity: 100}
		if n.step(t, 10*time.Second); measured.Load() != 3 {
			t.Errorf("measured %d times, want a new measurement", measured.Load())
		}
		n.blame.abandon()
	})
}

// What is measured of a pod with limits ends with it: a static pod that comes back under its UID has used nothing yet.
func TestMeasurementsEndWithTheirPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, Settings{})
		n.add(newPod("static", 0, "", "1Mi"), nil)
		answers := make(chan map[types.UID]*Usage, 1)
		measured := slowDisks(n, answers)
		n.step(t, 0)
		with := n.pods
		n.pods = nil
		n.step(t, 10*time.Second)
		synctest.Wait()
		answers <- map[types.UID]*Usage{"static": {}}
		n.pods = with
		if got := n.step(t, 10*time.Second); got != "" || measured.Load() != 2 {
			t.Errorf("ended: %q after %d measurements, want another", got, measured.Load())
		}
	})
}

// A walk ends with the kubelet, in the middle of a directory, too.
func TestWalksThatAreAbandoned(t *testing.T) {
	const files = readAtOnce / 10 // more than are read at once
	dir := t.TempDir()
	for i := range files {
		must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
	}
	if _, inodes, err := walk(t.Context(), dir, false, nil); inodes != files || err != nil {
		t.Errorf("%d inodes, %v", inodes, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, inodes, err := walk(ctx, dir, false, nil); inodes > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("abandoned: %d inodes, %v", inodes, err)
	}
}
