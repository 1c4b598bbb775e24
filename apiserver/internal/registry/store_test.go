package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

var (
	create = &metav1.CreateOptions{}
	now    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// strategy has a little of everything: services of a kind that end gracefully.
func strategy() registry.Strategy[*corev1.Service] {
	return registry.Strategy[*corev1.Service]{
		Resource: core.Services, Singular: "service", StoragePrefix: "services/specs",
		New:           func() *corev1.Service { return &corev1.Service{} },
		HasGeneration: true,
		Default: func(s *corev1.Service) {
			if s.Spec.Type == "" {
				s.Spec.Type = corev1.ServiceTypeClusterIP
			}
		},
		PrepareForCreate: func(_ context.Context, s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
		Validate: func(_ context.Context, s *corev1.Service) field.ErrorList {
			if s.Spec.ExternalName == "bad" {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "externalName"), "bad", "is bad")}
			}
			return nil
		},
		Warnings: func(context.Context, *corev1.Service) []string { return []string{"be careful"} },
		Update: registry.Change[*corev1.Service]{
			Prepare: func(_ context.Context, s, old *corev1.Service) { s.Status = old.Status },
			Validate: func(_ context.Context, s, old *corev1.Service) field.ErrorList {
				if s.Spec.Type != old.Spec.Type {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "type"), s.Spec.Type, "field is immutable")}
				}
				return nil
			},
		},
		Status: &registry.Change[*corev1.Service]{
			Prepare: func(_ context.Context, s, old *corev1.Service) { s.Spec = old.Spec },
		},
		Subresources: map[string]registry.Change[*corev1.Service]{"quiet": {KeepsGeneration: true}},
		BeginDelete: func(_ context.Context, s *corev1.Service, o *metav1.DeleteOptions) (int64, bool) {
			if o.GracePeriodSeconds == nil {
				seconds := int64(30)
				o.GracePeriodSeconds = &seconds
			}
			return *o.GracePeriodSeconds, *o.GracePeriodSeconds > 0
		},
		Held:   func(s *corev1.Service) bool { return s.Spec.ExternalName == "held" },
		Fields: func(s *corev1.Service) fields.Set { return fields.Set{"spec.type": string(s.Spec.Type)} },
	}
}

type bed struct {
	*registry.Store[*corev1.Service]
	t       testing.TB
	clock   *clocktesting.FakeClock
	storage storage.Interface
}

func start(t testing.TB, change ...func(*registry.Strategy[*corev1.Service])) *bed {
	t.Helper()
	s := strategy()
	for _, c := range change {
		c(&s)
	}
	b := &bed{t: t, clock: clocktesting.NewFakeClock(now), storage: etcdtest.Start(t)}
	b.Store = registry.NewStore(s, registry.Options{Storage: b.storage, Clock: b.clock, Logger: zap.NewNop()})
	run(t, b.Store.Run)
	if err := b.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func run(t testing.TB, loop func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- loop(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("loop ended with %v", err)
		}
	})
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

func (b *bed) create(s *corev1.Service) *corev1.Service {
	b.t.Helper()
	made, err := b.CreateTyped(b.t.Context(), s)
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// put is a PUT of obj.
func (b *bed) put(obj *corev1.Service) (*corev1.Service, error) {
	e, _, err := b.Update(b.t.Context(), obj.Namespace, obj.Name, "", func(core.Object) (core.Object, error) {
		return obj.DeepCopy(), nil
	}, registry.Admit{}, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return b.read(e), nil
}

func (b *bed) read(e registry.Encoded) *corev1.Service {
	b.t.Helper()
	s := &corev1.Service{}
	if err := json.Unmarshal(e.JSON, s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bed) delete(name string, o *metav1.DeleteOptions) (*corev1.Service, bool) {
	b.t.Helper()
	e, gone, err := b.Delete(b.t.Context(), "ns", name, registry.Admit{}, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.read(e), gone
}

func (b *bed) exists(name string) bool {
	b.t.Helper()
	_, err := b.GetTyped(b.t.Context(), "ns", name, "")
	if err != nil && !apierrors.IsNotFound(err) {
		b.t.Fatal(err)
	}
	return err == nil
}

func pointer[T any](v T) *T { return &v }

func TestCreateSetsWhatIsTheServers(t *testing.T) {
	b := start(t)
	s := service("a")
	s.UID, s.Generation, s.SelfLink = "mine", 7, "x"
	s.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	s.DeletionTimestamp, s.DeletionGracePeriodSeconds = &s.CreationTimestamp, pointer(int64(1))
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
	warnings := &request.Warnings{}
	e, err := b.Create(request.WithWarnings(t.Context(), warnings), s, registry.Admit{}, create)
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
		"twice":            {func(*corev1.Service) {}, apierrors.IsAlreadyExists, ""},
		"bad name":         {func(s *corev1.Service) { s.Name = "A_b" }, apierrors.IsInvalid, "metadata.name"},
		"no namespace":     {func(s *corev1.Service) { s.Namespace = "" }, apierrors.IsInvalid, "metadata.namespace"},
		"bad label":        {func(s *corev1.Service) { s.Labels = map[string]string{"a b": "x"} }, apierrors.IsInvalid, "metadata.labels"},
		"bad annotation":   {func(s *corev1.Service) { s.Annotations = map[string]string{"": "x"} }, apierrors.IsInvalid, "metadata.annotations"},
		"bad finalizer":    {func(s *corev1.Service) { s.Finalizers = []string{"a b"} }, apierrors.IsInvalid, "metadata.finalizers"},
		"bad owner":        {func(s *corev1.Service) { s.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, apierrors.IsInvalid, "metadata.ownerReferences[0].apiVersion"},
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

// taken is a store in which some names exist already.
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
	if _, err := s.CreateTyped(t.Context(), obj); !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), "generated") && !strings.Contains(err.Error(), "generate") {
		t.Errorf("got %v", err)
	}
}

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

func TestUpdateRefusals(t *testing.T) {
	b := start(t)
	made := b.create(service("a"))
	for name, c := range map[string]struct {
		change  func(*corev1.Service)
		is      func(error) bool
		message string
	}{
		"old version": {func(s *corev1.Service) { s.ResourceVersion = "1" }, apierrors.IsConflict, "the object has been modified; please apply your changes to the latest version and try again"},
		"no version":  {func(s *corev1.Service) { s.ResourceVersion = "" }, apierrors.IsInvalid, "metadata.resourceVersion: Invalid value: \"\": must be specified for an update"},
		"other uid":   {func(s *corev1.Service) { s.UID = "other" }, apierrors.IsConflict, "Precondition failed: UID"},
		"immutable":   {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, apierrors.IsInvalid, "field is immutable"},
		"created":     {func(s *corev1.Service) { s.CreationTimestamp = metav1.NewTime(now.Add(time.Hour)) }, apierrors.IsInvalid, "metadata.creationTimestamp"},
		"deleted":     {func(s *corev1.Service) { s.DeletionTimestamp = pointer(metav1.NewTime(now)) }, apierrors.IsInvalid, "metadata.deletionTimestamp"},
		"not there":   {func(s *corev1.Service) { s.Name = "b" }, apierrors.IsNotFound, `services "b" not found`},
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

// Everybody adds one; nobody's is lost, although all begin from a cache that
// may be behind.
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
	got, err := b.GetTyped(t.Context(), "ns", "a", "")
	if err != nil || got.Labels["n"] != strconv.Itoa(each*all) {
		t.Errorf("counted %v, %v", got.Labels, err)
	}
}

// A client that knows its own write must not be refused because the cache does
// not yet.
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

func TestDryRun(t *testing.T) {
	b := start(t)
	dry := []string{metav1.DryRunAll}
	if _, err := b.Create(t.Context(), service("a"), registry.Admit{}, &metav1.CreateOptions{DryRun: dry}); err != nil || b.exists("a") {
		t.Errorf("create: %v, there: %v", err, b.exists("a"))
	}
	made := b.create(service("a"))
	if _, err := b.Create(t.Context(), service("a"), registry.Admit{}, &metav1.CreateOptions{DryRun: dry}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create of what exists: %v", err)
	}
	_, _, err := b.Update(t.Context(), "ns", "a", "", func(o core.Object) (core.Object, error) {
		o.SetLabels(map[string]string{"x": "y"})
		return o, nil
	}, registry.Admit{}, &metav1.UpdateOptions{DryRun: dry})
	if err != nil {
		t.Error(err)
	}
	if _, gone, err := b.Delete(t.Context(), "ns", "a", registry.Admit{}, &metav1.DeleteOptions{DryRun: dry, GracePeriodSeconds: pointer(int64(0))}); err != nil || !gone {
		t.Errorf("delete: %v, %v", gone, err)
	}
	if got, err := b.GetTyped(t.Context(), "ns", "a", ""); err != nil || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

func TestAdmissionRunsAroundTheRules(t *testing.T) {
	b := start(t)
	var order []string
	admit := registry.Admit{
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
	refuse := registry.Admit{Validate: func(context.Context, core.Object, core.Object) error {
		return apierrors.NewForbidden(core.Services.GVR().GroupResource(), "b", errors.New("no"))
	}}
	if _, err := b.Create(t.Context(), service("b"), refuse, create); !apierrors.IsForbidden(err) || b.exists("b") {
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
	if e := <-w.Events(); e.Type != "DELETED" {
		t.Errorf("got %s", e.Type)
	}
}

func TestListSelectsAndPages(t *testing.T) {
	b := start(t)
	for i := range 5 {
		s := service(fmt.Sprintf("s-%d", i))
		s.Labels = map[string]string{"odd": strconv.FormatBool(i%2 == 1)}
		b.create(s)
	}
	list, err := b.List(t.Context(), "ns", registry.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"odd": "true"})})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("labels: %d, %v", len(list.Items), err)
	}
	list, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.type=ClusterIP"), Limit: 3})
	if err != nil || len(list.Items) != 3 || list.Remaining != nil || list.Continue == "" {
		t.Errorf("fields: %d, %v", len(list.Items), err)
	}
	list, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.type=ClusterIP"), Limit: 3, Continue: list.Continue})
	if err != nil || len(list.Items) != 2 || list.Continue != "" {
		t.Errorf("next page: %d, %v", len(list.Items), err)
	}
	_, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.clusterIP=x")})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported: spec.clusterIP") {
		t.Errorf("unknown field: %v", err)
	}
}
