package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

func TestCreateSetsWhatIsTheServers(t *testing.T) {
	b := start(t)
	s := service("a")
	s.UID, s.Generation, s.SelfLink = "mine", 7, "x"
	s.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	s.DeletionTimestamp, s.DeletionGracePeriodSeconds = &s.CreationTimestamp, new(int64(1))
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
	warnings := &request.Warnings{}
	e, err := b.Create(request.With(t.Context(), &request.Arrival{Warnings: warnings}), s, registry.Admission{}, create)
	if err != nil {
		t.Fatal(err)
	}
	made := b.read(e)
	if made.UID == "mine" || made.UID == "" || made.Generation != 1 || made.SelfLink != "" || !made.CreationTimestamp.Time.Equal(now) ||
		made.DeletionTimestamp != nil || made.DeletionGracePeriodSeconds != nil || made.ResourceVersion == "" || len(made.Status.LoadBalancer.Ingress) != 0 {
		t.Errorf("made %s", e.JSON)
	}
	if made.Kind != "Service" || made.APIVersion != "v1" || made.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("made %s", e.JSON)
	}
	if got := warnings.All(); len(got) != 1 || got[0] != "be careful" {
		t.Errorf("warnings %q", got)
	}
	stored, err := b.storage.Get(t.Context(), "/registry/services/specs/ns/a")
	if err != nil || string(stored.Value) != string(e.JSON) {
		t.Errorf("stored %s, %v", stored.Value, err)
	}
}

func TestCreateRefusals(t *testing.T) {
	b := start(t)
	b.create(service("a"))
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		is     func(error) bool
		cause  string
	}{
		"twice":          {func(*corev1.Service) {}, apierrors.IsAlreadyExists, ""},
		"bad name":       {func(s *corev1.Service) { s.Name = "A_b" }, apierrors.IsInvalid, "metadata.name"},
		"no namespace":   {func(s *corev1.Service) { s.Namespace = "" }, apierrors.IsInvalid, "metadata.namespace"},
		"bad label":      {func(s *corev1.Service) { s.Labels = map[string]string{"a b": "x"} }, apierrors.IsInvalid, "metadata.labels"},
		"bad annotation": {func(s *corev1.Service) { s.Annotations = map[string]string{"": "x"} }, apierrors.IsInvalid, "metadata.annotations"},
		"bad finalizer":  {func(s *corev1.Service) { s.Finalizers = []string{"a b"} }, apierrors.IsInvalid, "metadata.finalizers"},
		"bad owner": {func(s *corev1.Service) { s.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, apierrors.IsInvalid,
			"metadata.ownerReferences[0].apiVersion"},
		"its own rules":    {func(s *corev1.Service) { s.Spec.ExternalName = "bad" }, apierrors.IsInvalid, "spec.externalName"},
		"resource version": {func(s *corev1.Service) { s.ResourceVersion = "1" }, apierrors.IsBadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := service("a")
			c.change(s)
			_, err := b.CreateTyped(t.Context(), s)
			if !c.is(err) {
				t.Fatalf("got %v", err)
			}
			var status apierrors.APIStatus
			if c.cause != "" && errors.As(err, &status) && !hasCause(status.Status(), c.cause) {
				t.Errorf("causes %+v", status.Status().Details.Causes)
			}
		})
	}
}

func hasCause(s metav1.Status, path string) bool {
	for _, c := range s.Details.Causes {
		if c.Field == path {
			return true
		}
	}
	return false
}

func TestGenerateName(t *testing.T) {
	b := start(t)
	seen := map[string]bool{}
	for range 50 {
		s := service("")
		s.GenerateName = strings.Repeat("x", 70)
		made := b.create(s)
		if len(made.Name) != 63 || seen[made.Name] {
			t.Errorf("generated %q", made.Name)
		}
		seen[made.Name] = true
	}
}

// taken is a store in which some names are taken.
type taken struct {
	storage.Interface
	left int
}

func (s *taken) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error) {
	if s.left > 0 {
		s.left--
		return storage.Object{}, &storage.KeyError{Op: "create", Key: key, Err: storage.ErrExists}
	}
	return s.Interface.Create(ctx, key, value, ttl)
}

func TestGeneratedNamesAreTriedAgain(t *testing.T) {
	store := &taken{Interface: etcdtest.Start(t), left: 3}
	s := registry.NewStore(strategy(), registry.Options{Storage: store, Clock: clocktesting.NewFakeClock(now), Logger: zap.NewNop()})
	obj := service("")
	obj.GenerateName = "g-"
	if made, err := s.CreateTyped(t.Context(), obj); err != nil || !strings.HasPrefix(made.Name, "g-") {
		t.Errorf("made %v, %v", made, err)
	}
	store.left = 100
	obj = service("")
	obj.GenerateName = "g-"
	if _, err := s.CreateTyped(t.Context(), obj); !apierrors.IsAlreadyExists(err) ||
		!strings.Contains(err.Error(), "generated") && !strings.Contains(err.Error(), "generate") {
		t.Errorf("got %v", err)
	}
}

func TestDryRun(t *testing.T) {
	b := start(t)
	dry := []string{metav1.DryRunAll}
	if _, err := b.Create(t.Context(), service("a"), registry.Admission{}, &metav1.CreateOptions{DryRun: dry}); err != nil || b.exists("a") {
		t.Errorf("create: %v, there: %v", err, b.exists("a"))
	}
	made := b.create(service("a"))
	if _, err := b.Create(t.Context(), service("a"), registry.Admission{}, &metav1.CreateOptions{DryRun: dry}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create of what exists: %v", err)
	}
	_, _, err := b.Update(t.Context(), registry.Target{Namespace: "ns", Name: "a"}, func(o core.Object) (core.Object, error) {
		o.SetLabels(map[string]string{"x": "y"})
		return o, nil
	}, registry.Admission{}, &metav1.UpdateOptions{DryRun: dry})
	if err != nil {
		t.Error(err)
	}
	atOnce := &metav1.DeleteOptions{DryRun: dry, GracePeriodSeconds: new(int64(0))}
	if _, gone, err := b.Delete(t.Context(), "ns", "a", registry.Admission{}, atOnce); err != nil || !gone {
		t.Errorf("delete: %v, %v", gone, err)
	}
	if got, err := b.stored("a"); err != nil || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

func TestAdmissionRunsAroundTheRules(t *testing.T) {
	b := start(t)
	var order []string
	admit := registry.Admission{
		Mutate: func(_ context.Context, obj, old core.Object) error {
			s := obj.(*corev1.Service)
			order = append(order, fmt.Sprintf("mutate %s %v", s.Spec.Type, old == nil))
			s.Labels = map[string]string{"admitted": "yes"}
			return nil
		},
		Validate: func(_ context.Context, obj, old core.Object) error {
			order = append(order, fmt.Sprintf("validate %v %v", obj.GetUID() != "", old == nil))
			return nil
		},
	}
	e, err := b.Create(t.Context(), service("a"), admit, create)
	if err != nil || b.read(e).Labels["admitted"] != "yes" {
		t.Errorf("%s, %v", e.JSON, err)
	}
	if got := strings.Join(order, ", "); got != "mutate ClusterIP true, validate true true" {
		t.Errorf("order: %s", got)
	}
	refuse := registry.Admission{Validate: func(context.Context, core.Object, core.Object) error {
		return apierrors.NewForbidden(core.Services.GVR().GroupResource(), "b", errors.New("no"))
	}}
	refused := service("b")
	refused.ResourceVersion = "1" // set by a client that comes later, and refused, too
	if _, err := b.Create(t.Context(), refused, refuse, create); !apierrors.IsForbidden(err) || b.exists("b") {
		t.Errorf("refused create: %v", err)
	}
	if _, _, err := b.Delete(t.Context(), "ns", "a", refuse, &metav1.DeleteOptions{}); !apierrors.IsForbidden(err) || !b.exists("a") {
		t.Errorf("refused delete: %v", err)
	}
}

func TestTTL(t *testing.T) {
	b := start(t, func(s *registry.Strategy[*corev1.Service]) {
		s.TTL = func(*corev1.Service) time.Duration { return time.Second }
	})
	made := b.create(service("a"))
	w, err := b.Watch(t.Context(), "ns", registry.ListOptions{ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	for e := range w.Events() {
		if e.Type != "DELETED" {
			t.Errorf("got %s", e.Type)
		}
		return
	}
	t.Error("the watch ended")
}

// TestTimesThatNobodyReads: the first and the last hours of what RFC 3339 can say are outside of it in UTC,
// in which times are stored, and protobuf has all years. An object with such a time could not be read back.
func TestTimesThatNobodyReads(t *testing.T) {
	b := start(t)
	const hour = 3600
	in := func(year, zone int) time.Time {
		return time.Date(year, time.December, 31, 23, 30, 0, 0, time.FixedZone("", zone))
	}
	for at, refused := range map[time.Time]bool{
		in(9999, -hour): true, in(10_000, 0): true, in(20_000, 0): true, in(-1, 0): true, in(-20, 0): true, in(-1, hour): true,
		in(9999, 0): false, in(9998, -hour): false, in(999, 0): false, in(0, 0): false, in(-1, -hour): false,
	} {
		admit := registry.Admission{TrackFields: func(obj, _ core.Object, _ []byte) {
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")},
				Time: &metav1.Time{Time: at},
			}})
		}}
		s := service("new")
		s.Annotations = map[string]string{"at": "10000-01-01T00:00:00Z"} // which is no time
		stored := b.create(service("stored"))
		_, createErr := b.Create(t.Context(), s.DeepCopy(), admit, create)
		_, _, updateErr := b.Update(t.Context(), registry.Target{Namespace: "ns", Name: "stored"}, func(core.Object) (core.Object, error) {
			stored.Annotations = s.Annotations
			return stored, nil
		}, admit, &metav1.UpdateOptions{})
		for _, err := range []error{createErr, updateErr} {
			if refused && !apierrors.IsBadRequest(err) || !refused && err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
		for _, name := range []string{"new", "stored"} {
			if name == "stored" || !refused {
				b.delete(name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			}
		}
	}
}
