package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// nodeAPI keeps one node and one lease, without a network: round trips are
// function calls, so a test's fake clock works.
type nodeAPI struct {
	mu      sync.Mutex
	node    *core.Node
	lease   *core.Lease
	creates int
	patches int
	renews  int
	away    bool
	// rival renews the lease before each renewal of ours; conflicted says that we
	// noticed.
	rival, conflicted bool
}

func (a *nodeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away {
		return nil, errors.New("away")
	}
	w := httptest.NewRecorder()
	switch {
	case strings.Contains(r.URL.Path, "/leases"):
		a.serveLease(w, r)
	default:
		a.serveNode(w, r)
	}
	return w.Result(), nil
}

func (a *nodeAPI) serveLease(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && a.lease == nil:
		notFound(w)
		return
	case r.Method != http.MethodGet:
		lease := &core.Lease{}
		_ = json.NewDecoder(r.Body).Decode(lease)
		a.renews++
		if a.rival && !a.conflicted {
			a.conflicted = true
			a.lease.ResourceVersion = fmt.Sprint(a.renews)
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict})
			return
		}
		a.conflicted = false
		a.lease = lease
		a.lease.ResourceVersion = fmt.Sprint(a.renews)
	}
	_ = json.NewEncoder(w).Encode(a.lease)
}

func (a *nodeAPI) serveNode(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && a.node != nil:
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure,
			Code:     http.StatusConflict,
			Reason:   metav1.StatusReasonAlreadyExists,
		})
		return
	case r.Method == http.MethodPost:
		a.creates++
		a.node = &core.Node{}
		_ = json.NewDecoder(r.Body).Decode(a.node)
		a.node.UID, a.node.ResourceVersion = "uid", "1"
		w.WriteHeader(http.StatusCreated)
	case a.node == nil:
		notFound(w)
		return
	case r.Method == http.MethodPatch:
		a.patches++
		patch, _ := io.ReadAll(r.Body)
		before, _ := json.Marshal(a.node)
		after, err := strategicpatch.StrategicMergePatch(before, patch, core.Node{})
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a.node = &core.Node{}
		_ = json.Unmarshal(after, a.node)
	}
	_ = json.NewEncoder(w).Encode(a.node)
}

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
}

func (a *nodeAPI) look(f func()) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// runningManager returns a Manager that reports to an API in memory until the test ends.
func runningManager(t *testing.T) (*Manager, *nodeAPI) {
	api := &nodeAPI{}
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: api})
	if err != nil {
		t.Fatal(err)
	}
	m := New(testConfig(t, client, clock.RealClock{}))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = m.runStatus(ctx) })
	running.Go(func() { _ = m.runLease(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m, api
}

func TestRegistersReportsAndRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, api := runningManager(t)

		api.look(func() {
			if api.creates != 1 || api.node.Labels["zone"] != "a" || api.node.Labels[corev1.LabelHostname] != "n" || api.lease == nil {
				t.Errorf("registered %d times: %+v", api.creates, api.node)
			}
		})
		time.Sleep(4 * time.Minute) // the bubble's clock
		api.look(func() {
			if api.patches > 1 || api.renews < 24 {
				t.Errorf("%d patches, %d renewals in four quiet minutes", api.patches, api.renews)
			}
			api.away = true
		})
		time.Sleep(time.Minute)
		api.look(func() { api.away, api.node = false, nil })
		m.nodeDeleted() // the watch reports that the node was deleted
		time.Sleep(10 * time.Second)
		api.look(func() {
			if api.creates != 2 {
				t.Errorf("registered %d times, want again after the deletion", api.creates)
			}
		})
	})
}

// Somebody who changes what a node says of its platform is corrected at the next report.
func TestPlatformLabelsAreCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, api := runningManager(t)
		time.Sleep(time.Minute) // the bubble's clock
		var changed *core.Node
		api.look(func() {
			api.node.Labels[corev1.LabelOSStable], api.node.Labels["zone"] = "other", "b"
			delete(api.node.Labels, corev1.LabelArchStable)
			api.node.ResourceVersion, api.patches = "2", 0
			changed = api.node.DeepCopy()
		})
		m.setNode(changed) // the watch's
		time.Sleep(time.Minute)
		api.look(func() {
			labels := api.node.Labels
			if labels[corev1.LabelOSStable] != goruntime.GOOS || labels[corev1.LabelArchStable] != goruntime.GOARCH || labels["zone"] != "b" || api.patches != 1 {
				t.Errorf("%v after %d patches", labels, api.patches)
			}
		})
	})
}
