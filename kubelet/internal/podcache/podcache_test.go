package podcache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kctl/kubelet/internal/podruntime"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestOlderStatusNeverReplacesNewer(t *testing.T) {
	c := New()
	newer, older := &podruntime.PodStatus{Name: "newer"}, &podruntime.PodStatus{Name: "older"}
	if !c.Set("u", newer, nil, start.Add(time.Second)) {
		t.Error("the first status was not taken")
	}
	if c.Set("u", older, nil, start) {
		t.Error("an older status was taken")
	}
	c.Delete("u", start)
	if got, _ := c.Get("u"); got != newer {
		t.Errorf("Get = %v, want the newer status", got)
	}
	c.Delete("u", start.Add(2*time.Second))
	if got, _ := c.Get("u"); got == nil || got.UID != "u" || got.Name != "" {
		t.Errorf("Get after Delete = %v, want an empty status", got)
	}
}

func TestGetNewerThanWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		got := make(chan *podruntime.PodStatus, 1)
		go func() {
			s, err := c.GetNewerThan(t.Context(), "u", start.Add(time.Second))
			if err != nil {
				t.Error(err)
			}
			got <- s
		}()
		c.Set("u", &podruntime.PodStatus{Name: "too old"}, nil, start)
		synctest.Wait()
		select {
		case s := <-got:
			t.Fatalf("returned %v, which is too old", s)
		default:
		}
		c.Complete(start.Add(2 * time.Second))
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
