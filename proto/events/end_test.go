package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// TestWhatWaitsIsSentAtTheEnd: an event that is being sent, those queued behind
// it, and those that may wait are all sent when the program ends; if the server
// is gone, the log says how many were not.
func TestWhatWaitsIsSentAtTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		broken bool
		want   []string
	}{
		"a server":            {want: []string{"first", "second", "may wait", "may wait, too"}},
		"a server that can't": {broken: true, want: []string{"first", "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string // by the server, one request after the other
			arrived, goOn := make(chan struct{}, 10), make(chan struct{})
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var event core.Event
				if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
					t.Errorf("body: %v", err)
				}
				got = append(got, event.InvolvedObject.Name)
				arrived <- struct{}{}
				<-goOn
				if test.broken {
					w.WriteHeader(http.StatusInternalServerError)
				}
				fmt.Fprint(w, "{}")
			}))
			defer server.Close()
			client, err := rest.New(&rest.Config{Host: server.URL, Insecure: true})
			if err != nil {
				t.Fatal(err)
			}
			defer client.HTTP().CloseIdleConnections()
			seen, logs := observer.New(zap.WarnLevel)
			r := NewRecorder(client, Options{Component: "scheduler", Host: "host", Busy: func() bool { return true }}, clock.RealClock{}, zap.New(seen))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			r.Event(pod("first"), corev1.EventTypeNormal, "A", "a")
			go func() { done <- r.Run(ctx) }()
			<-arrived
			r.Laterf(pod("may wait"), corev1.EventTypeNormal, "C", "c")
			r.Laterf(pod("may wait, too"), corev1.EventTypeNormal, "D", "d")
			r.Event(pod("second"), corev1.EventTypeNormal, "B", "b")
			cancel()
			close(goOn)
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("sent about %q, want %q", got, test.want)
			}
			if lost := logs.FilterField(zap.Int("count", 3)).Len(); lost == 1 != test.broken {
				t.Errorf("the log says %v", logs.All())
			}
		})
	}
}
