package audit

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/eventually"
)

// newTestWebhook returns a webhook of which receive is the receiver.
func newTestWebhook(t *testing.T, clock clock.Clock, receive http.HandlerFunc) Backend {
	t.Helper()
	server := httptest.NewServer(receive)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "webhook.yaml")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"` + server.URL +
		`/audit"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":""}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	hook, err := NewWebhook(kubeconfig, time.Millisecond, clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hook.Close() })
	return hook
}

func TestWebhook(t *testing.T) {
	var calls atomic.Int32
	var got eventList
	hook := newTestWebhook(t, clock.RealClock{}, func(w http.ResponseWriter, r *http.Request) {
		switch n := calls.Add(1); {
		case n == 1:
			w.WriteHeader(http.StatusInternalServerError)
			return
		case n > 2:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
	})
	if err := hook.Deliver(t.Context(), t.Context(), []*Event{event("/1"), event("/2")}); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 2 || len(got.Items) != 2 || got.Kind != "EventList" || got.APIVersion != apiVersion {
		t.Errorf("after %d calls: %+v", calls.Load(), got)
	}
	if err := hook.Deliver(t.Context(), t.Context(), []*Event{event("/3")}); err == nil || calls.Load() != 2+webhookAttempts {
		t.Errorf("refused events were sent %d times: %v", calls.Load()-2, err)
	}
}

// TestAtTheEndABatchThatFailedIsSentOnceMore, instead of keeping its place from batches that were never sent.
func TestAtTheEndABatchThatFailedIsSentOnceMore(t *testing.T) {
	var calls atomic.Int32
	stopped := testclock.NewFakeClock(time.Now())
	hook := newTestWebhook(t, stopped, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) != 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	patient, end := context.WithCancel(t.Context())
	defer end()
	delivered := make(chan error, 1)
	go func() { delivered <- hook.Deliver(t.Context(), patient, []*Event{event("/1")}) }()
	eventually.Holds(t, "the batch waits for its next attempt", stopped.HasWaiters)
	end()
	if err := <-delivered; err != nil || calls.Load() != 2 {
		t.Errorf("sent %d times, %v", calls.Load(), err)
	}
	if err := hook.Deliver(t.Context(), patient, []*Event{event("/2")}); err == nil || calls.Load() != 3 {
		t.Errorf("one that fails after the end was sent %d times, %v", calls.Load()-2, err)
	}
}
