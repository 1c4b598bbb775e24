package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// TestUnreadable: of a resource with an unreadable object, requests that do not need the object
// are answered, as by kube-apiserver, and the object can be deleted with the
// option for that.
func TestUnreadable(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	good, err := store.Create(t.Context(), "/registry/services/specs/ns/good",
		[]byte(`{"kind":"Service","apiVersion":"v1","metadata":{"name":"good","namespace":"ns"}}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Client().Put(t.Context(), "/registry/services/specs/ns/bad", "k8s\x00nonsense"); err != nil {
		t.Fatal(err)
	}
	s := registry.NewStore(strategy(), registry.Options{Storage: store, Clock: clock.RealClock{}, Logger: zap.NewNop()})
	run(t, s.Run)
	if err := s.WaitReady(t.Context()); err == nil {
		t.Error("ready")
	}
	refused := func(what string, err error, reason metav1.StatusReason, words string) {
		t.Helper()
		if apierrors.ReasonForError(err) != reason || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, version := range []string{"", "0"} {
		if e, err := s.Get(t.Context(), "ns", "good", version); err != nil || e.Revision != good.Revision {
			t.Errorf("the good one at %q: %v", version, err)
		}
		_, err = s.Get(t.Context(), "ns", "bad", version)
		refused("the bad one", err, metav1.StatusReasonInternalError, "stored value cannot be read")
		_, err = s.Get(t.Context(), "ns", "none", version)
		refused("none", err, metav1.StatusReasonNotFound, "")
	}
	_, err = s.List(t.Context(), "ns", registry.ListOptions{})
	refused("all", err, metav1.StatusReasonStoreReadError, "failed to read one or more services from the storage: ")
	if causes := err.(*apierrors.StatusError).ErrStatus.Details.Causes; len(causes) != 1 || causes[0].Field != "/registry/services/specs/ns/bad" ||
		causes[0].Type != metav1.CauseTypeUnexpectedServerResponse {
		t.Errorf("causes %+v", causes)
	}
	if list, err := s.List(t.Context(), "other", registry.ListOptions{}); err != nil || len(list.Items) != 0 || list.ResourceVersion == "0" {
		t.Errorf("another namespace: %+v, %v", list, err)
	}
	_, err = s.List(t.Context(), "ns", registry.ListOptions{ResourceVersion: "0"})
	refused("any state", err, metav1.StatusReasonTooManyRequests, "storage is (re)initializing")
	_, err = s.Watch(t.Context(), "ns", registry.ListOptions{})
	refused("watched", err, metav1.StatusReasonTooManyRequests, "storage is (re)initializing")

	unsafe := func(name string, dry ...string) (bool, error) {
		e, gone, err := s.Delete(t.Context(), "ns", name, registry.Admission{},
			&metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true), DryRun: dry})
		if err == nil && e.JSON != nil {
			t.Errorf("%s was %s", name, e.JSON)
		}
		return gone, err
	}
	_, _, err = s.Delete(t.Context(), "ns", "bad", registry.Admission{}, nil)
	refused("an ordinary deletion", err, metav1.StatusReasonInternalError, "stored value cannot be read")
	_, err = unsafe("good")
	refused("an unsafe deletion of the good one", err, metav1.StatusReasonConflict, "decodable from storage")
	_, err = unsafe("none")
	refused("an unsafe deletion of none", err, metav1.StatusReasonNotFound, "")
	for _, dry := range [][]string{{metav1.DryRunAll}, nil} { // after the dry run it is still there
		if gone, err := unsafe("bad", dry...); !gone || err != nil {
			t.Errorf("deleted: %v, %v", gone, err)
		}
	}
	if list, err := s.List(t.Context(), "ns", registry.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("after that: %d, %v", len(list.Items), err)
	}
}

// TestManyUnreadable: a list names a hundred of the objects that can't be read, as kube-apiserver's does.
func TestManyUnreadable(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	spoil := func(i int) {
		t.Helper()
		if _, err := embedded.Client().Put(t.Context(), fmt.Sprintf("/registry/services/specs/ns/bad-%03d", i), "k8s\x00nonsense"); err != nil {
			t.Fatal(err)
		}
	}
	spoil(0)
	s := registry.NewStore(strategy(), registry.Options{Storage: store, Clock: clock.RealClock{}, Logger: zap.NewNop()})
	run(t, s.Run)
	if err := s.WaitReady(t.Context()); err == nil {
		t.Error("ready")
	}
	for i := range 101 {
		spoil(i)
		var listed *apierrors.StatusError
		if _, err := s.List(t.Context(), "ns", registry.ListOptions{}); !errors.As(err, &listed) {
			t.Fatal(err)
		}
		causes := listed.ErrStatus.Details.Causes
		if last := causes[len(causes)-1]; len(causes) != i+1 || (last.Type == metav1.CauseTypeTooMany) != (i == 100) ||
			i < 100 && !strings.HasSuffix(last.Field, fmt.Sprintf("/bad-%03d", i)) {
			t.Fatalf("%d causes of %d, the last is %+v", len(causes), i+1, last)
		}
		if more := fmt.Sprintf(" (and %d more)", min(i, 99)); strings.HasSuffix(listed.Error(), more) != (i > 0) {
			t.Fatalf("%d objects: %v", i+1, listed)
		}
	}
}
