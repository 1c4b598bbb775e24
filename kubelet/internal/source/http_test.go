package source

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/utils/clock"

	"kctl/proto/core"
)

func TestManifestURL(t *testing.T) {
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Cluster") != "blue" || broken.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, manifest)
	}))
	defer server.Close()
	h := &HTTP{
		URL:      server.URL,
		Header:   http.Header{"X-Cluster": {"blue"}},
		NodeName: "n",
		Period:   time.Hour,
		Clock:    clock.RealClock{},
		Logger:   zap.NewNop(),
		Client:   NewClient(time.Minute),
	}
	m := NewMux(clock.RealClock{}, zap.NewNop())
	run(t, func(ctx context.Context) error { return h.Run(ctx, m) })
	if u := <-m.Updates(); u.Op != core.ADD || u.Source != core.HTTPSource || u.Pods[0].Name != "web-n" {
		t.Errorf("%s from %s: %v", u.Op, u.Source, u.Pods)
	}
	broken.Store(true)
	if _, _, err := h.read(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("error %v, want the status that was answered", err)
	}
}

func TestAManifestURLThatAnswersWithNothing(t *testing.T) {
	answers := []string{manifest, "", "", " ", manifest}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, answers[min(int(asked.Add(1)), len(answers))-1])
	}))
	defer server.Close()
	watched, logs := observer.New(zap.WarnLevel)
	h := &HTTP{URL: server.URL, NodeName: "n", Period: time.Millisecond, Clock: clock.RealClock{}, Logger: zap.New(watched), Client: NewClient(time.Minute)}
	m := NewMux(clock.RealClock{}, zap.NewNop())
	run(t, func(ctx context.Context) error { return h.Run(ctx, m) })
	for _, want := range []core.PodOperation{core.ADD, core.REMOVE, core.ADD} {
		if u := <-m.Updates(); u.Op != want || len(u.Pods) != 1 || u.Pods[0].Name != "web-n" {
			t.Errorf("%s of %v, want %s of web-n", u.Op, u.Pods, want)
		}
	}
	if n := logs.FilterMessageSnippet("returned an empty body").Len(); n != 1 {
		t.Errorf("%d lines in the log about it, want one", n)
	}
}
