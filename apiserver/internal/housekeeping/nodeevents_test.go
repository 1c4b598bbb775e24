package housekeeping

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// told lists the events about nodes.
func (h *house) told(t *testing.T) string {
	t.Helper()
	list, err := h.events.List(t.Context(), "default", registry.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, item := range list.Items {
		event, err := h.events.Decode(item)
		if err != nil {
			t.Fatal(err)
		}
		e := event.(*core.Event)
		all = append(all, strings.Join([]string{e.Source.Component, string(e.InvolvedObject.UID), e.Reason, e.Message}, "; "))
	}
	return strings.Join(all, "\n")
}

// There are events for nodes that are added and removed, but not for those that
// existed long before.
func TestNodesThatComeAndGoAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, recent := node("old", corev1.ConditionTrue), node("recent", corev1.ConditionTrue)
		old.CreationTimestamp = metav1.Now()
		pass(nodeStartupGrace)
		recent.CreationTimestamp = metav1.Now()
		h := run(t, newNodeLifecycle, old, recent)
		const registered = "node-controller; node-1; RegisteredNode; Node recent event: Registered Node recent in Controller"
		if got := h.told(t); got != registered {
			t.Errorf("at the start %q, want %q", got, registered)
		}
		pass(time.Second) // events are named by their time
		gone(t, h.nodes, "recent")
		const removed = "node-controller; node-1; RemovingNode; Node recent event: Removing Node recent from Controller"
		if got := h.told(t); got != registered+"\n"+removed {
			t.Errorf("after it went %q", got)
		}
	})
}
