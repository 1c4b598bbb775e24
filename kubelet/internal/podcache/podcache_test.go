package podcache

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// named is the status of a pod that the runtime has something of.
func named(name string) *runtimestate.PodStatus {
	return &runtimestate.PodStatus{Name: name, Containers: []*runtimestate.ContainerStatus{{}}}
}

func TestOlderStatusNeverReplacesNewer(t *testing.T) {
	c := New()
	newer := named("newer")
	if !c.Set("u", newer, nil, start.Add(time.Second)) {
		t.Error("the first status was not taken")
	}
	if c.Set("u", named("older"), nil, start) || c.Set("u", &runtimestate.PodStatus{}, nil, start) {
		t.Error("an older status was taken")
	}
	c.Complete(start, slices.Values([]types.UID{}))
	if got, _ := c.Get("u"); got != newer {
		t.Errorf("Get = %v, want the newer status", got)
	}
}

func TestPodsThatAreGoneAreForgotten(t *testing.T) {
	list := func(pods ...types.UID) iter.Seq[types.UID] { return slices.Values(pods) }
	failed := errors.New("failed")
	for name, forget := range map[string]func(c *Cache){
		"a relist without it": func(c *Cache) { c.Complete(start.Add(time.Second), list("stays")) },
		"its worker finds nothing of it": func(c *Cache) {
			c.Set("u", &runtimestate.PodStatus{UID: "u"}, nil, start.Add(2*time.Second))
			if c.Set("u", named("stale"), nil, start.Add(time.Second)) {
				t.Error("an answer from before the pod was gone brought it back")
			}
			if got, _ := c.Get("u"); got.Name != "" || len(c.All()) != 1 {
				t.Errorf("Get = %v, All = %v, want an empty status, and the pod that stays", got, c.All())
			}
			c.Complete(start.Add(3*time.Second), list("stays"))
		},
		"a late word after the relist": func(c *Cache) {
			c.Complete(start.Add(time.Second), list("stays"))
			c.Set("u", nil, failed, start)
			if _, err := c.Get("u"); !errors.Is(err, failed) {
				t.Errorf("Get = %v, want what was said last", err)
			}
			c.Complete(start.Add(2*time.Second), list("stays"))
		},
	} {
		c := New()
		c.Set("u", named("gone"), nil, start)
		c.Set("stays", named("stays"), nil, start)
		c.Complete(start, list("u", "stays"))
		forget(c)
		got, err := c.Get("u")
		if err != nil || got == nil || got.UID != "u" || got.Name != "" {
			t.Errorf("%s: Get = %v, %v, want an empty status", name, got, err)
		}
		if len(c.entries) != 1 || c.entries["stays"].status == nil {
			t.Errorf("%s: kept %v", name, c.entries)
		}
	}
}

func TestGetNewerThanWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		got := make(chan *runtimestate.PodStatus, 1)
		go func() {
			s, err := c.GetNewerThan(t.Context(), "u", start.Add(time.Second))
			if err != nil {
				t.Error(err)
			}
			got <- s
		}()
		c.Set("u", named("too old"), nil, start)
		synctest.Wait()
		select {
		case s := <-got:
			t.Fatalf("returned %v, which is too old", s)
		default:
		}
		c.Complete(start.Add(2*time.Second), slices.Values([]types.UID{"u"}))
		if s := <-got; s.Name != "too old" {
			t.Errorf("got %v, want the status that the relist confirmed", s)
		}
	})
}

func TestGetNewerThanBeforeTheFirstRelist(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New().GetNewerThan(ctx, "u", time.Time{}); err == nil {
		t.Error("a status was given though the runtime was never asked")
	}
}
