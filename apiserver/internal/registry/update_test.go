package registry_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

func TestUpdateKeepsWhatIsTheServers(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	obj := service("a")
	obj.ResourceVersion = made.ResourceVersion
	obj.Spec.ExternalName = "x"
	obj.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
	got, err := b.put(obj)
	if err != nil {
		t.Fatal(err)
	}
	if got.UID != made.UID || !got.CreationTimestamp.Equal(&made.CreationTimestamp) || got.Generation != 2 || len(got.Status.LoadBalancer.Ingress) != 0 {
		t.Errorf("got %+v", got)
	}
	got.Labels = map[string]string{"a": "b"}
	if got, err = b.put(got); err != nil || got.Generation != 2 {
		t.Errorf("labels changed the generation: %+v, %v", got, err)
	}
	status, err := b.UpdateTyped(t.Context(), "ns", "a", "status", func(s *corev1.Service) error {
		s.Spec.ExternalName = "ignored"
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
		return nil
	})
	if err != nil || status.Spec.ExternalName != "x" || len(status.Status.LoadBalancer.Ingress) != 1 || status.Generation != 2 {
		t.Errorf("status: %+v, %v", status, err)
	}
	quiet, err := b.UpdateTyped(t.Context(), "ns", "a", "quiet", func(s *corev1.Service) error { s.Spec.ExternalName = "q"; return nil })
	if err != nil || quiet.Generation != 2 || quiet.Spec.ExternalName != "q" {
		t.Errorf("quiet: %+v, %v", quiet, err)
	}
	if _, err := b.UpdateTyped(t.Context(), "ns", "a", "nothing", func(*corev1.Service) error { return nil }); !apierrors.IsNotFound(err) {
		t.Errorf("unknown subresource: %v", err)
	}
}

// TestTheVersionThatAdmissionSets: it counts like one that the client sent.
func TestTheVersionThatAdmissionSets(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	set := registry.Admission{Mutate: func(_ context.Context, obj, _ core.Object) error { obj.SetResourceVersion("1"); return nil }}
	keep := func(core.Object) (core.Object, error) { return made.DeepCopy(), nil }
	if _, _, err := b.Update(t.Context(), registry.Target{Namespace: made.Namespace, Name: "a"}, keep, set, &metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

func TestUpdateRefusals(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	for name, c := range map[string]struct {
		change  func(*corev1.Service)
		is      func(error) bool
		message string
	}{
		"old version": {func(s *corev1.Service) { s.ResourceVersion = "1" }, apierrors.IsConflict,
			"the object has been modified; please apply your changes to the latest version and try again"},
		"no version": {func(s *corev1.Service) { s.ResourceVersion = "" }, apierrors.IsInvalid,
			`services "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`},
		"version 0": {func(s *corev1.Service) { s.ResourceVersion = "0" }, apierrors.IsInvalid,
			"metadata.resourceVersion: Invalid value: 0: must be specified for an update"},
		"no number": {func(s *corev1.Service) { s.ResourceVersion = "-1" }, func(err error) bool { return apierrors.ReasonForError(err) == "" },
			`strconv.ParseUint: parsing "-1": invalid syntax`},
		"other uid": {func(s *corev1.Service) { s.UID = "other" }, apierrors.IsConflict,
			"/ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: "},
		"base of names": {func(s *corev1.Service) { s.GenerateName = "a/b" }, apierrors.IsInvalid,
			"metadata.generateName: Invalid value: \"a/b\": may not contain '/'"},
		"finalizer": {func(s *corev1.Service) { s.Finalizers = []string{"ABC"} }, apierrors.IsInvalid,
			"metadata.finalizers[0]: Invalid value: \"ABC\": name is neither a standard finalizer name nor is it fully qualified"},
		"finalizers": {func(s *corev1.Service) { s.Finalizers = []string{"a.b/c d"} }, apierrors.IsInvalid, "metadata.finalizers: Invalid value"},
		"immutable":  {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, apierrors.IsInvalid, "field is immutable"},
		"deleted":    {func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.NewTime(now)) }, apierrors.IsInvalid, "metadata.deletionTimestamp"},
		"not there":  {func(s *corev1.Service) { s.Name = "b" }, apierrors.IsNotFound, `services "b" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			obj := made.DeepCopy()
			c.change(obj)
			if _, err := b.put(obj); !c.is(err) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestDeletionStays: an update can't change the deletion timestamp.
func TestDeletionStays(t *testing.T) {
	b := start(t)
	s := service("a")
	s.Finalizers = []string{"example.org/kept"}
	b.create(s)
	if err := b.DeleteTyped(t.Context(), "ns", "a", nil); err != nil {
		t.Fatal(err)
	}
	going, err := b.stored("a")
	if err != nil {
		t.Fatal(err)
	}
	other := going.DeepCopy()
	other.DeletionTimestamp = new(metav1.NewTime(going.DeletionTimestamp.Add(-time.Hour)))
	if got, err := b.put(other); err != nil || !got.DeletionTimestamp.Equal(going.DeletionTimestamp) {
		t.Errorf("deleted at %v, and then %v: %v", going.DeletionTimestamp, got.DeletionTimestamp, err)
	}
}

func TestNoChangeIsNoWrite(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	got, err := b.put(made)
	if err != nil || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("same object: %v, %v", got, err)
	}
	if revision, err := b.storage.Revision(t.Context()); err != nil || strconv.FormatInt(revision, 10) != made.ResourceVersion {
		t.Errorf("etcd is at %d, %v; the object at %s", revision, err, made.ResourceVersion)
	}
}

// Everybody adds one, and no addition is lost, although all start from a cache
// that may be behind.
func TestUpdatesWithoutAVersionAreTriedAgain(t *testing.T) {
	b := start(t)
	b.create(service("a"))
	var wg sync.WaitGroup
	const each, all = 20, 8
	for range all {
		wg.Go(func() {
			for range each {
				_, err := b.UpdateTyped(t.Context(), "ns", "a", "", func(s *corev1.Service) error {
					n, _ := strconv.Atoi(s.Labels["n"])
					s.Labels = map[string]string{"n": strconv.Itoa(n + 1)}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := b.stored("a")
	if err != nil || got.Labels["n"] != strconv.Itoa(each*all) {
		t.Errorf("counted %v, %v", got.Labels, err)
	}
}

// TestTheLastOfMany: an update succeeds after a hundred conflicts.
func TestTheLastOfMany(t *testing.T) {
	b := start(t)
	b.create(service("a"))
	count := func(label string) func(s *corev1.Service) error {
		return func(s *corev1.Service) error {
			n, _ := strconv.Atoi(s.Labels[label])
			metav1.SetMetaDataLabel(&s.ObjectMeta, label, strconv.Itoa(n+1))
			return nil
		}
	}
	others := 0
	got, err := b.UpdateTyped(t.Context(), "ns", "a", "", func(s *corev1.Service) error {
		if others < 100 {
			others++
			if _, err := b.UpdateTyped(t.Context(), "ns", "a", "", count("others")); err != nil {
				t.Error(err)
			}
		}
		return count("mine")(s)
	})
	if err != nil || got.Labels["mine"] != "1" || got.Labels["others"] != "100" {
		t.Errorf("%v, %v", got, err)
	}
}

// A client that knows its own write must not be refused because the cache does
// not have it yet.
func TestUpdateRightAfterAWrite(t *testing.T) {
	b := start(t)
	for i := range 50 {
		made := b.create(service(fmt.Sprintf("s-%d", i)))
		for j := range 5 {
			made.Labels = map[string]string{"j": strconv.Itoa(j)}
			var err error
			if made, err = b.put(made); err != nil {
				t.Fatalf("object %d, update %d: %v", i, j, err)
			}
		}
	}
}
