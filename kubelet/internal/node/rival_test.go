package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/proto/rest"
)

type toldEvents struct {
	mu   sync.Mutex
	told []string
}

func (e *toldEvents) Eventf(_ runtime.Object, eventType, reason, _ string, _ ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, eventType+" "+reason)
}

// Two kubelets with the same node name: an event says so once, and once more
// for another one.
func TestTwoKubeletsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, told := &nodeAPI{}, &toldEvents{}
		client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: api})
		if err != nil {
			t.Fatal(err)
		}
		config := testConfig(t, client, clock.RealClock{})
		config.Events = told
		m := New(config)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = m.runLease(ctx) })
		defer func() { cancel(); running.Wait() }()
		for round := range 2 {
			time.Sleep(5 * time.Minute) // alone
			api.look(func() { api.rival = true })
			time.Sleep(5 * time.Minute)
			api.look(func() { api.rival = false })
			told.mu.Lock()
			if want := map[int]string{0: "[Warning DuplicateNode]", 1: "[Warning DuplicateNode Warning DuplicateNode]"}[round]; fmt.Sprint(told.told) != want {
				t.Errorf("told %v, want %s", told.told, want)
			}
			told.mu.Unlock()
		}
	})
}

func TestOneWriteIsNoRival(t *testing.T) {
	var r leaseRival
	for i := range 100 {
		if r.renewed(i%20 == 0) {
			t.Fatal("a write now and then is taken for a kubelet's")
		}
	}
}
