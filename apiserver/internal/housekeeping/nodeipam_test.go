package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/podcidr"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// ranging runs the loop for nodes, and returns the function that ends it.
func ranging(t *testing.T, nodes registry.Resource, events *registrytest.Store, clusters ...string) (stop func()) {
	t.Helper()
	d := &Dependencies{
		Resources: []registry.Resource{nodes, events}, Clock: clock.RealClock{}, Logger: zap.NewNop(),
		ServiceRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
	}
	for _, cluster := range clusters {
		p := netip.MustParsePrefix(cluster)
		bits := 24
		if p.Addr().Is6() {
			bits = 64
		}
		r, err := podcidr.New(p, bits)
		if err != nil {
			t.Fatal(err)
		}
		d.PodCIDRs = append(d.PodCIDRs, r)
	}
	loop, err := newNodeIPAM(d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := runAllOf(ctx, loop)
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return func() { cancel(); <-done }
}

func bare(name string, ranges ...string) *core.Node {
	n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)}}
	n.Spec.PodCIDRs = ranges
	return n
}

func rangesOf(s *registrytest.Store, name string) []string {
	return s.Peek("", name).(*core.Node).Spec.PodCIDRs
}

// gone deletes a node.
func gone(t *testing.T, s *registrytest.Store, name string) {
	t.Helper()
	if _, _, err := s.Delete(t.Context(), "", name, registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func TestNodesGetRangesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, events := registrytest.New(core.Nodes, bare("old", "10.0.1.0/24", "fd00::/64")), registrytest.New(core.Events)
		stop := ranging(t, nodes, events, "10.0.0.0/22", "fd00::/62")
		for _, name := range []string{"a", "b"} {
			nodes.Put(bare(name))
		}
		synctest.Wait()
		// 10.0.0.0/24 belongs to the services, 10.0.1.0/24 to the old node.
		seen := [][]string{rangesOf(nodes, "a"), rangesOf(nodes, "b")}
		slices.SortFunc(seen, slices.Compare)
		if fmt.Sprint(seen) != "[[10.0.2.0/24 fd00:0:0:1::/64] [10.0.3.0/24 fd00:0:0:2::/64]]" {
			t.Fatalf("got %v", seen)
		}
		if n := nodes.Peek("", "a").(*core.Node); n.Spec.PodCIDR != n.Spec.PodCIDRs[0] {
			t.Errorf("podCIDR %s, podCIDRs %s", n.Spec.PodCIDR, n.Spec.PodCIDRs)
		}
		// No range is left. Another leader knows that, too.
		nodes.Put(bare("late"))
		synctest.Wait()
		stop()
		ranging(t, nodes, events, "10.0.0.0/22", "fd00::/62")
		if got := rangesOf(nodes, "late"); len(got) > 0 {
			t.Fatalf("late has %v", got)
		}
		list, err := events.List(t.Context(), "default", registry.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			t.Fatalf("no event: %v", err)
		}
		event, err := events.Decode(list.Items[0])
		if e := event.(*core.Event); err != nil || e.Reason != "CIDRNotAvailable" || e.InvolvedObject.Name != "late" || e.InvolvedObject.Kind != "Node" {
			t.Errorf("event %+v", e)
		}
		// A deleted node's range is given to another.
		gone(t, nodes, "old")
		if got := rangesOf(nodes, "late"); !slices.Equal(got, []string{"10.0.1.0/24", "fd00::/64"}) {
			t.Errorf("late has %v", got)
		}
	})
}

// unsure is a store whose writes end with an error, whether or not they were
// done.
type unsure struct {
	*registrytest.Store
	done  bool
	fails atomic.Int32
}

func (u *unsure) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	if u.fails.Add(-1) < 0 {
		return u.Store.Update(ctx, target, change, admit, o)
	}
	if u.done {
		_, _, _ = u.Store.Update(ctx, target, change, admit, o)
	}
	return registry.Encoded{}, false, errors.New("etcd does not answer")
}

func TestRangesWhoseWriteIsNotKnown(t *testing.T) {
	for _, done := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			nodes := &unsure{Store: registrytest.New(core.Nodes), done: done}
			nodes.fails.Store(3)
			ranging(t, nodes, registrytest.New(core.Events), "10.244.0.0/22")
			for _, name := range []string{"a", "b", "c", "d"} {
				nodes.Put(bare(name))
			}
			pass(time.Minute)
			seen := map[string]bool{}
			for _, name := range []string{"a", "b", "c", "d"} {
				got := rangesOf(nodes.Store, name)
				if len(got) != 1 || seen[got[0]] {
					t.Errorf("done=%t: %s has %v, others %v", done, name, got, seen)
					continue
				}
				seen[got[0]] = true
			}
		})
	}
}

// A node that is deleted while it is handled keeps no range.
func TestNodesThatGoKeepNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := registrytest.New(core.Nodes)
		ranging(t, nodes, registrytest.New(core.Events), "10.244.0.0/24")
		for i := range 20 {
			name := fmt.Sprintf("n%d", i)
			nodes.Put(bare(name))
			synctest.Wait()
			if got := rangesOf(nodes, name); !slices.Equal(got, []string{"10.244.0.0/24"}) {
				t.Fatalf("%s has %v", name, got)
			}
			gone(t, nodes, name)
		}
	})
}

// unhurried is a store whose writes take a second.
type unhurried struct{ *registrytest.Store }

func (u unhurried) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	<-time.After(time.Second)
	return u.Store.Update(ctx, target, change, admit, o)
}

// TestARangeThatComesToNothing: the node that found it taken gets it.
func TestARangeThatComesToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := unhurried{registrytest.New(core.Nodes)}
		ranging(t, nodes, registrytest.New(core.Events), "10.244.0.0/24")
		nodes.Put(bare("goes"))
		synctest.Wait()
		nodes.Put(bare("stays"))
		synctest.Wait()
		gone(t, nodes.Store, "goes")
		pass(time.Minute)
		if got := rangesOf(nodes.Store, "stays"); !slices.Equal(got, []string{"10.244.0.0/24"}) {
			t.Errorf("it has %v", got)
		}
	})
}

func TestRangesAreForgottenOnlyWhenItIsCertain(t *testing.T) {
	n := &nodeIPAM{assigned: map[string][]netip.Prefix{}, reportedFull: map[string]bool{}, clock: clock.RealClock{}, logger: zap.NewNop()}
	ours := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}
	for name, c := range map[string]struct {
		stored *core.Node
		kept   bool
	}{
		"gone":             {nil, false},
		"others gave":      {bare("n", "10.2.0.0/24"), false},
		"ours was written": {bare("n", "10.1.0.0/24"), true},
		"is to be written": {bare("n"), true},
	} {
		store := registrytest.New(core.Nodes)
		if c.stored != nil {
			store.Put(c.stored)
		}
		n.store, n.assigned["n"] = store, ours
		if err := n.assign(t.Context(), "n", "node-n", ours); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if kept := n.assigned["n"] != nil; kept != c.kept {
			t.Errorf("%s: kept is %t", name, kept)
		}
	}
}
