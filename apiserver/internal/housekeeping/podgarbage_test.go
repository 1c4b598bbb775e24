package housekeeping

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// followDeletions returns a function that returns the pods deleted since, in their last state.
func followDeletions(t *testing.T, pods *registrytest.Store) func() map[string]*core.Pod {
	t.Helper()
	synctest.Wait()
	now, err := pods.List(t.Context(), "", registry.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := pods.Watch(t.Context(), "", registry.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan *core.Pod, 10)
	go func() {
		for event := range watcher.Events() {
			if obj, err := pods.Decode(event.Object); err == nil && event.Type == "DELETED" {
				gone <- obj.(*core.Pod)
			}
		}
	}()
	return func() map[string]*core.Pod {
		synctest.Wait()
		out := map[string]*core.Pod{}
		for range len(gone) {
			p := <-gone
			out[p.Name] = p
		}
		return out
	}
}

func TestPodGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deleted := metav1.Now()
		unscheduled := pod("unscheduled", "")
		unscheduled.DeletionTimestamp = &deleted
		mine, lost, stranded := pod("mine", "n1"), pod("lost", "n2"), pod("stranded", "n3")
		lost.Generation, stranded.DeletionTimestamp = 3, &deleted
		dead := node("n3", corev1.ConditionUnknown)
		dead.Spec.Taints = append(dead.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
		h := run(t, newPodGarbage, node("n1", corev1.ConditionTrue), dead, mine, lost, unscheduled, pod("waiting", ""))
		endings := followDeletions(t, h.pods)
		h.pods.Put(stranded)
		pass(time.Second)
		if h.pods.Peek("shop", "unscheduled") != nil || h.pods.Peek("shop", "lost") == nil {
			t.Error("first round: unscheduled has to go, lost may wait")
		}
		pass(missingNodeGrace - podGarbageInterval/2)
		if h.pods.Peek("shop", "lost") == nil {
			t.Error("lost is gone although its node may come back")
		}
		pass(2 * podGarbageInterval)
		if h.pods.Peek("shop", "lost") != nil || h.pods.Peek("shop", "mine") == nil || h.pods.Peek("shop", "waiting") == nil {
			t.Error("later: only lost has to go")
		}
		// Nobody else says that they have ended; a finalizer may keep them.
		ended := endings()
		if p := ended["stranded"]; p == nil || p.Status.Phase != corev1.PodFailed || len(p.Status.Conditions) > 0 {
			t.Errorf("on a node out of service: %+v", p)
		}
		if p := ended["lost"]; p == nil || p.Status.Phase != corev1.PodFailed || p.Status.ObservedGeneration != 3 || len(p.Status.Conditions) != 1 ||
			p.Status.Conditions[0].Type != corev1.DisruptionTarget || p.Status.Conditions[0].ObservedGeneration != 3 {
			t.Errorf("on a node that is gone: %+v", p)
		}
	})
}

// TestPodsThatHaveEnded: of those beyond the number to keep, the evicted ones go first, and the oldest
// after them.
func TestPodsThatHaveEnded(t *testing.T) {
	for most, want := range map[int]string{0: "a b c", -1: "a b c", 1: "b", 2: "a b", 3: "a b c"} {
		synctest.Test(t, func(t *testing.T) {
			var objects []core.Object
			for i, name := range []string{"a", "b", "c"} {
				p := pod(name, "n1")
				p.CreationTimestamp, p.Status.Phase = metav1.NewTime(time.Now().Add(time.Duration(i)*time.Second)), corev1.PodSucceeded
				if name == "c" {
					p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
				}
				objects = append(objects, p)
			}
			h := run(t, func(d *Dependencies) (Loop, error) {
				d.MaxTerminatedPods = most
				return newPodGarbage(d)
			}, append(objects, node("n1", corev1.ConditionTrue), pod("runs", "n1"))...)
			pass(podGarbageInterval)
			var left []string
			for _, name := range []string{"a", "b", "c"} {
				if h.pods.Peek("shop", name) != nil {
					left = append(left, name)
				}
			}
			if got := strings.Join(left, " "); got != want || h.pods.Peek("shop", "runs") == nil {
				t.Errorf("at most %d: left %s, want %s", most, got, want)
			}
		})
	}
}
