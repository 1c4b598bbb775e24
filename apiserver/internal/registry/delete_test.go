package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

func grace(seconds int64) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{GracePeriodSeconds: &seconds}
}

func TestGracefulDeletion(t *testing.T) {
	b := start(t)
	b.create(service("a"))
	marked, gone := b.delete("a", &metav1.DeleteOptions{})
	if gone || marked.DeletionTimestamp == nil || !marked.DeletionTimestamp.Time.Equal(now.Add(30*time.Second)) || *marked.DeletionGracePeriodSeconds != 30 ||
		marked.Generation != 2 {
		t.Fatalf("marked: gone %v, %+v", gone, marked.ObjectMeta)
	}
	again, gone := b.delete("a", grace(60))
	if gone || again.ResourceVersion != marked.ResourceVersion {
		t.Errorf("a longer period: gone %v, %+v", gone, again.ObjectMeta)
	}
	shorter, gone := b.delete("a", grace(10))
	if gone || !shorter.DeletionTimestamp.Time.Equal(now.Add(10*time.Second)) || *shorter.DeletionGracePeriodSeconds != 10 || shorter.Generation != 2 {
		t.Errorf("a shorter period: gone %v, %+v", gone, shorter.ObjectMeta)
	}
	last, gone := b.delete("a", grace(0))
	if !gone || b.exists("a") || last.ResourceVersion == shorter.ResourceVersion {
		t.Errorf("no period: gone %v, %+v", gone, last.ObjectMeta)
	}
	if _, _, err := b.Delete(t.Context(), "ns", "a", registry.Admission{}, nil); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

// "For ever" overflows a time.Duration.
func TestEndlessGracePeriod(t *testing.T) {
	b := start(t)
	b.create(service("a"))
	if marked, gone := b.delete("a", grace(math.MaxInt64)); gone || !marked.DeletionTimestamp.After(now.AddDate(99, 0, 0)) {
		t.Errorf("gone %v, %+v", gone, marked.ObjectMeta)
	}
	if shorter, gone := b.delete("a", grace(10)); gone || !shorter.DeletionTimestamp.Time.Equal(now.Add(10*time.Second)) {
		t.Errorf("a shorter period: gone %v, %+v", gone, shorter.ObjectMeta)
	}
}

// A watcher must see that the grace period became zero: kubelets would
// otherwise go on with the old one.
func TestForcedDeletionIsToldOf(t *testing.T) {
	b := start(t, func(s *registry.Strategy[*corev1.Service]) {
		s.Delete.TerminatedElsewhere = func(s *corev1.Service) bool { return s.Spec.ExternalName == "runs" }
	})
	for _, c := range []struct {
		name, runs string
		before     *metav1.DeleteOptions // an earlier deletion
		want       []string
	}{
		{"at once", "runs", nil, []string{"MODIFIED 0", "DELETED 0"}},
		{"while it ends", "runs", grace(500), []string{"MODIFIED 0", "DELETED 0"}},
		{"after its end", "", grace(500), []string{"DELETED 500"}},
	} {
		s := service("a")
		s.Spec.ExternalName = c.runs
		had := b.create(s)
		if c.before != nil {
			had, _ = b.delete("a", c.before)
		}
		if _, gone := b.delete("a", grace(0)); !gone {
			t.Fatalf("%s: not gone", c.name)
		}
		w, err := b.Watch(t.Context(), "ns", registry.ListOptions{ResourceVersion: had.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for e := range w.Events() {
			s := b.read(e.Object)
			got = append(got, fmt.Sprint(e.Type, " ", *s.DeletionGracePeriodSeconds))
			if e.Type == "DELETED" {
				break
			}
			if !s.DeletionTimestamp.Time.Equal(now) || s.Generation != 2 {
				t.Errorf("%s: told %+v", c.name, s.ObjectMeta)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: a watcher saw %v, not %v", c.name, got, c.want)
		}
	}
}

// meddled is a storage in which something happens just before an object is
// removed.
type meddled struct {
	storage.Interface
	before func(key string, revision int64)
}

func (m *meddled) Delete(ctx context.Context, key string, revision int64) (storage.Object, error) {
	if before := m.before; before != nil {
		m.before = nil
		before(key, revision)
	}
	return m.Interface.Delete(ctx, key, revision)
}

// A watcher that sees the zero grace period may react before the object is
// removed, by ending it or writing its status: the deletion must succeed all
// the same.
func TestForcedDeletionOfWhatHasJustEnded(t *testing.T) {
	b := start(t, func(s *registry.Strategy[*corev1.Service]) {
		s.Delete.TerminatedElsewhere = func(*corev1.Service) bool { return true }
	})
	meddled := &meddled{Interface: b.storage}
	s := strategy()
	s.Delete.TerminatedElsewhere = func(*corev1.Service) bool { return true }
	store := registry.NewStore(s, registry.Options{Storage: meddled, Clock: b.clock, Logger: zap.NewNop()})
	run(t, store.Run)
	if err := store.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]func(key string, revision int64){
		"is done": func(key string, revision int64) {
			if _, err := b.storage.Delete(t.Context(), key, revision); err != nil {
				t.Error(err)
			}
		},
		"writes a status": func(key string, revision int64) {
			at, err := b.storage.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			other := service("a")
			if err := json.Unmarshal(at.Value, other); err != nil {
				t.Fatal(err)
			}
			other.ResourceVersion, other.Status.Conditions = "", []metav1.Condition{{Type: "Ended"}}
			value, err := json.Marshal(other)
			if err == nil {
				_, err = b.storage.Update(t.Context(), key, revision, value, 0)
			}
			if err != nil {
				t.Error(err)
			}
		},
	} {
		had := b.create(service("a"))
		o := grace(0)
		o.Preconditions = &metav1.Preconditions{UID: &had.UID, ResourceVersion: &had.ResourceVersion}
		o.DryRun = []string{metav1.DryRunAll}
		if _, gone, err := store.Delete(t.Context(), "ns", "a", registry.Admission{}, o); !gone || err != nil {
			t.Errorf("%s, dry run: gone %v, %v", name, gone, err)
		}
		if e, err := b.Get(t.Context(), "ns", "a", ""); err != nil || b.read(e).ResourceVersion != had.ResourceVersion {
			t.Errorf("%s: after a dry run %v, %v", name, e.Revision, err)
		}
		o.DryRun, meddled.before = nil, before
		if _, gone, err := store.Delete(t.Context(), "ns", "a", registry.Admission{}, o); !gone || err != nil || meddled.before != nil {
			t.Errorf("watcher, %s: gone %v, %v", name, gone, err)
		}
		if _, err := b.Get(t.Context(), "ns", "a", ""); !apierrors.IsNotFound(err) {
			t.Errorf("watcher, %s: it is still there: %v", name, err)
		}
	}
}

func TestFinalizersKeepTheObject(t *testing.T) {
	b := start(t)
	s := service("a")
	s.Finalizers = []string{"example.com/one", "example.com/two"}
	b.create(s)
	marked, gone := b.delete("a", grace(0))
	if gone || marked.DeletionTimestamp == nil || *marked.DeletionGracePeriodSeconds != 0 {
		t.Fatalf("marked: gone %v, %+v", gone, marked.ObjectMeta)
	}
	if again, gone := b.delete("a", grace(0)); gone || again.ResourceVersion != marked.ResourceVersion {
		t.Errorf("deleted again: gone %v, %+v", gone, again.ObjectMeta)
	}
	more := marked.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.com/three")
	if _, err := b.put(more); !apierrors.IsInvalid(err) {
		t.Errorf("a new finalizer: %v", err)
	}
	marked.Finalizers = marked.Finalizers[:1]
	marked, err := b.put(marked)
	if err != nil || !b.exists("a") {
		t.Fatalf("one finalizer less: %v", err)
	}
	marked.Finalizers = nil
	last, err := b.put(marked)
	if err != nil || b.exists("a") {
		t.Errorf("the last finalizer: %v, there %v", err, b.exists("a"))
	}
	if last.ResourceVersion == marked.ResourceVersion {
		t.Error("the deletion has no revision of its own")
	}
}

func TestHeldObjectsStay(t *testing.T) {
	b := start(t)
	s := service("a")
	s.Spec.ExternalName = "held"
	b.create(s)
	if marked, gone := b.delete("a", grace(0)); gone || marked.DeletionTimestamp == nil {
		t.Fatalf("gone %v, %+v", gone, marked.ObjectMeta)
	}
	change := func(name string, to string) {
		_, err := b.UpdateTyped(t.Context(), "ns", "a", name, func(s *corev1.Service) error {
			s.Spec.ExternalName = to
			s.Labels = map[string]string{"to": to}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if change("quiet", "held"); !b.exists("a") {
		t.Fatal("a change that holds it removed it")
	}
	if change("quiet", "free"); b.exists("a") {
		t.Error("it is not held any more, and stays")
	}
}

func TestPropagationPolicies(t *testing.T) {
	b := start(t)
	for _, c := range []struct {
		name    string
		options metav1.DeleteOptions
		had     []string
		want    []string
	}{
		{"orphan", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}, nil, []string{"orphan"}},
		{"foreground", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, []string{"orphan", "a.b/c"},
			[]string{"a.b/c", "foregroundDeletion"}},
		{"background", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, []string{"orphan"}, nil},
		{"old-style", metav1.DeleteOptions{OrphanDependents: new(true)}, nil, []string{"orphan"}},
		{"none", metav1.DeleteOptions{}, []string{"orphan"}, []string{"orphan"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := service(c.name)
			s.Finalizers = c.had
			b.create(s)
			c.options.GracePeriodSeconds = new(int64(0))
			got, gone := b.delete(c.name, &c.options)
			if gone != (c.want == nil) || !gone && !slices.Equal(got.Finalizers, c.want) {
				t.Errorf("gone %v, finalizers %v", gone, got.Finalizers)
			}
		})
	}
}

// A deletion is sent to admission once, even if it is denied.
func TestADeniedDeletionIsAskedAboutOnce(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	if _, err := b.Get(t.Context(), "ns", "a", made.ResourceVersion); err != nil { // from the cache, when it has it
		t.Fatal(err)
	}
	asked := 0
	_, _, err := b.Delete(t.Context(), "ns", "a", registry.Admission{Validate: func(context.Context, core.Object, core.Object) error {
		asked++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "a", errors.New("it stays"))
	}}, grace(0))
	if !apierrors.IsForbidden(err) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestDeletePreconditions(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	for name, p := range map[string]metav1.Preconditions{
		"uid":     {UID: new(types.UID("other"))},
		"version": {ResourceVersion: new("1")},
	} {
		if _, _, err := b.Delete(t.Context(), "ns", "a", registry.Admission{}, &metav1.DeleteOptions{Preconditions: &p}); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := grace(0)
	o.Preconditions = &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}
	if _, gone := b.delete("a", o); !gone {
		t.Error("preconditions that hold did not let it go")
	}
}

func TestDeleteCollection(t *testing.T) {
	b := start(t)
	for _, name := range []string{"a", "b", "c"} {
		s := service(name)
		s.Labels = map[string]string{"name": name}
		b.create(s)
	}
	selector, err := labels.Parse("name in (a,c)")
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := b.DeleteCollection(t.Context(), "ns", registry.Admission{}, grace(0), registry.ListOptions{Labels: selector})
	if err != nil || len(deleted.Items) != 2 || b.exists("a") || !b.exists("b") || b.exists("c") {
		t.Errorf("deleted %d, %v", len(deleted.Items), err)
	}
}
