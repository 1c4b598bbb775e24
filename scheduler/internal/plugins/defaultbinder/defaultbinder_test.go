package defaultbinder

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/rest"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

func TestBind(t *testing.T) {
	pod := framework.NewPodInfo(fixture.Pod("web"))
	for name, code := range map[string]int{"taken": http.StatusCreated, "conflict": http.StatusConflict} {
		t.Run(name, func(t *testing.T) {
			var got core.Binding
			var path, stamps string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path, stamps = r.Method+" "+r.URL.Path, r.Header.Get(relay.Header)
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				reason := ""
				if code == http.StatusConflict {
					reason = "Conflict"
				}
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"x","reason":"` + reason + `"}`))
			}))
			defer server.Close()
			client, err := rest.New(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			state := framework.NewCycleState(&relay.Stamps{})
			state.Stamps.Stamp(relay.SchedulerQueued, clock.RealClock{}.Now())
			status := New(client, clock.RealClock{}).Bind(t.Context(), state, pod, "n1")
			if want := code == http.StatusCreated; status.IsSuccess() != want {
				t.Errorf("status %v, want success %v", status.Reasons(), want)
			}
			if code == http.StatusConflict && !apierrors.IsConflict(status.Err()) {
				t.Errorf("the kind of the error is lost: %v", status.Err())
			}
			if path != "POST /api/v1/namespaces/default/pods/web/binding" {
				t.Errorf("sent %s", path)
			}
			if got.Target.Name != "n1" || got.Target.Kind != "Node" || got.UID != pod.Pod.UID || got.Kind != "Binding" {
				t.Errorf("sent %+v", got)
			}
			if again := len(state.Stamps.Unsent()); again != map[bool]int{true: 0, false: 2}[status.IsSuccess()] {
				t.Errorf("%d stamps go with the next request", again)
			}
			sent, err := relay.Decode(stamps)
			if err != nil || len(sent) != 2 || sent[1].Hop != relay.SchedulerBinding {
				t.Errorf("stamps %v %v", sent, err)
			}
		})
	}
}
