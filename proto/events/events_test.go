package events

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/proto/rest"
)

func pod(name string) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "uid-" + "x"}}
}

type request struct {
	method, path string
	event        core.Event
}

// record runs a Recorder with a server that answers with code, until it has got
// n requests.
func record(t *testing.T, n int, code func(i int) int, report func(r *Recorder)) []request {
	t.Helper()
	got := make(chan request, 100)
	count := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := request{method: r.Method, path: r.URL.Path}
		if err := json.NewDecoder(r.Body).Decode(&req.event); err != nil {
			t.Errorf("body: %v", err)
		}
		w.WriteHeader(code(count))
		count++
		fmt.Fprint(w, "{}")
		got <- req
	}))
	defer server.Close()
	client, err := rest.New(&rest.Config{Host: server.URL, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.HTTP().CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	r := NewRecorder(client, Options{Component: "kubelet", Host: "node-1", Actions: map[string]string{"Started": "Starting"}}, clock.RealClock{}, zap.NewNop())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	report(r)
	var out []request
	for range n {
		out = append(out, <-got)
	}
	cancel()
	<-done
	return out
}

func created(int) int { return http.StatusCreated }

func TestEqualEventsAreCounted(t *testing.T) {
	got := record(t, 3, created, func(r *Recorder) {
		r.ContainerEventf(pod("web"), "spec.containers{c}", corev1.EventTypeNormal, "Started", "Started container %s", "c")
		r.Eventf(pod("web"), corev1.EventTypeWarning, "BackOff", "again")
		r.Eventf(pod("web"), corev1.EventTypeWarning, "BackOff", "again")
	})
	first := got[0].event
	if got[0].method != "POST" || got[0].path != "/api/v1/namespaces/a/events" {
		t.Errorf("sent as %s %s", got[0].method, got[0].path)
	}
	if first.InvolvedObject.Kind != "Pod" || first.InvolvedObject.FieldPath != "spec.containers{c}" ||
		first.Source.Host != "node-1" || first.Message != "Started container c" || first.Count != 1 || first.Action != "Starting" || got[1].event.Action != "" {
		t.Errorf("event %+v", first)
	}
	if got[2].method != "PATCH" || !strings.HasSuffix(got[2].path, "/"+got[1].event.Name) || got[2].event.Count != 2 {
		t.Errorf("the repetition was sent as %s %s, count %d", got[2].method, got[2].path, got[2].event.Count)
	}
}

func TestLongMessagesAreCutBetweenCharacters(t *testing.T) {
	full := strings.Repeat("x", maxMessage-4) + "ééé"
	event := New(&core.ObjectReference{Name: "web"}, corev1.EventSource{}, corev1.EventTypeNormal, "A", full, time.Now())
	if want := strings.Repeat("x", maxMessage-4) + "..."; event.Message != want {
		t.Errorf("the message ends in %q, want %q", event.Message[maxMessage-8:], want[maxMessage-8:])
	}
}

func TestNamesOfObjectsWithLongNames(t *testing.T) {
	got := record(t, 1, created, func(r *Recorder) {
		r.Event(pod(strings.Repeat("a", 236)+"."+strings.Repeat("b", 16)), corev1.EventTypeNormal, "A", "first")
	})
	if errs := validation.IsDNS1123Subdomain(got[0].event.Name); len(errs) > 0 {
		t.Errorf("name %q: %v", got[0].event.Name, errs)
	}
}

func TestServerErrorsAreTriedAgainAndRefusalsAreNot(t *testing.T) {
	got := record(t, 3, func(i int) int {
		return []int{http.StatusInternalServerError, http.StatusForbidden, http.StatusCreated}[i]
	}, func(r *Recorder) {
		r.Event(pod("one"), corev1.EventTypeNormal, "A", "first")
		r.Event(pod("two"), corev1.EventTypeNormal, "B", "second")
	})
	var messages []string
	for _, r := range got {
		messages = append(messages, r.event.Message)
	}
	if fmt.Sprint(messages) != "[first first second]" {
		t.Errorf("sent %v", messages)
	}
}

func TestReportingNeverBlocks(t *testing.T) {
	warnings, logged := observer.New(zap.WarnLevel)
	r := NewRecorder(nil, Options{Component: "kubelet", Host: "node-1"}, clock.RealClock{}, zap.New(warnings))
	for range queueLength + 10 { // the Recorder does not run
		r.Event(pod("web"), corev1.EventTypeNormal, "A", strings.Repeat("x", 2*maxMessage))
	}
	if len(r.queue) != queueLength {
		t.Errorf("%d wait", len(r.queue))
	}
	if e := <-r.queue; len(e.Message) != maxMessage {
		t.Errorf("a message of %d bytes", len(e.Message))
	}
	for len(r.queue) > 0 {
		r.logDropped() // not yet
		<-r.queue
	}
	r.logDropped()
	r.logDropped()
	lines := logged.All()
	if len(lines) != 2 || lines[1].ContextMap()["count"] != int64(10) {
		t.Errorf("of 10 events that were dropped, this was logged: %v", lines)
	}
}

func TestCorrelate(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	c := newCorrelator(clock)
	event := func(reason, message string) *core.Event {
		return &core.Event{
			ObjectMeta: metav1.ObjectMeta{Name: message}, Reason: reason, Message: message,
			InvolvedObject: core.ObjectReference{UID: "u", Name: "web"},
		}
	}
	sent, combined := 0, 0
	for i := range 40 {
		e := event("Failed", fmt.Sprint("try ", i))
		if _, ok := c.correlate(e); ok {
			sent++
			if strings.HasPrefix(e.Message, "(combined") {
				combined++
			}
		}
	}
	if sent != burst || combined != burst-maxSimilar {
		t.Errorf("%d sent, %d of them combined; want %d and %d", sent, combined, burst, burst-maxSimilar)
	}
	end := event("Killing", "its end")
	end.Type = "Normal"
	if _, ok := c.correlate(end); !ok {
		t.Error("warnings leave no room for what is normal")
	}
	clock.Step(10 * time.Minute)
	if _, ok := c.correlate(event("Other", "later")); !ok {
		t.Error("the object may not tell anything any more")
	}
}

// In a storm that concerns more objects than are remembered, those that were told of last are
// still limited, and their events counted.
func TestAStormIsBounded(t *testing.T) {
	c := newCorrelator(testclock.NewFakeClock(time.Unix(1000, 0)))
	tell := func(object int) (known, ok bool) {
		name := fmt.Sprint(object)
		return c.correlate(&core.Event{Message: "m", InvolvedObject: core.ObjectReference{Name: name, UID: types.UID(name)}})
	}
	const objects = 3 * maxRemembered
	for object := range objects {
		tell(object)
		if object < objects-maxRemembered {
			continue
		}
		for told := range burst - 1 {
			if known, ok := tell(object); !known || !ok {
				t.Fatalf("event %d of object %d: known %v, sent %v", told+2, object, known, ok)
			}
		}
	}
	for object := objects - maxRemembered; object < objects; object++ {
		if _, ok := tell(object); ok {
			t.Fatalf("object %d may tell more than %d events", object, burst)
		}
	}
	if c.events.Len() > maxRemembered || c.groups.Len() > maxRemembered || c.limits.Len() > maxRemembered {
		t.Errorf("%d events, %d groups and %d limits are kept", c.events.Len(), c.groups.Len(), c.limits.Len())
	}
}

// A try whose answer was lost has created the event; the next try finds it.
func TestAnEventThatIsThereIsTold(t *testing.T) {
	there := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "web.1").Status()
	there.APIVersion, there.Kind = "v1", "Status"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(there)
	}))
	defer server.Close()
	client, err := rest.New(&rest.Config{Host: server.URL, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.HTTP().CloseIdleConnections()
	log, told := observer.New(zap.InfoLevel)
	r := NewRecorder(client, Options{Component: "kubelet", Host: "node-1"}, clock.RealClock{}, zap.New(log))
	web := &core.ObjectReference{Kind: "Pod", Namespace: "a", Name: "web"}
	r.sendWithRetry(t.Context(), New(web, corev1.EventSource{}, corev1.EventTypeNormal, "Pulled", "", time.Unix(1, 0)), false)
	if told.Len() > 0 {
		t.Errorf("it was logged: %v", told.All())
	}
}
