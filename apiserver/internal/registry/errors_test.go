package registry_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

func TestWithoutEtcd(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, filepath.Join(t.TempDir(), "etcd"))
	b := &bed{t: t, clock: clocktesting.NewFakeClock(now), storage: store}
	b.Store = registry.NewStore(strategy(), registry.Options{Storage: store, Clock: b.clock, Logger: zap.NewNop()})
	run(t, b.Store.Run)
	if err := b.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.create(service("a"))
	b.exists("a")
	if err := embedded.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Find[*corev1.Service](t.Context(), b.Store, "ns", "a"); err != nil {
		t.Errorf("a read that need not be new: %v", err)
	}
	_, err := b.stored("a")
	if seconds, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !ok || seconds == 0 {
		t.Errorf("read: %v", err)
	}
	if _, err := b.CreateTyped(t.Context(), service("b")); err == nil || apierrors.IsAlreadyExists(err) {
		t.Errorf("write: %v", err)
	}
}

// late is a store whose etcd does not answer reads in their time.
type late struct{ storage.Interface }

func (late) Revision(context.Context) (int64, error) {
	return 0, fmt.Errorf("%w: %w", storage.ErrUnavailable, context.DeadlineExceeded)
}

// TestReadsThatHaveWaitedInVain: clients are not told to wait again.
func TestReadsThatHaveWaitedInVain(t *testing.T) {
	b := &bed{t: t, clock: clocktesting.NewFakeClock(now), storage: late{etcdtest.Start(t)}}
	b.Store = registry.NewStore(strategy(), registry.Options{Storage: b.storage, Clock: b.clock, Logger: zap.NewNop()})
	run(t, b.Store.Run)
	if err := b.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := b.stored("a")
	if _, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsTimeout(err) || ok {
		t.Errorf("%#v", err)
	}
}

func TestObjectsThatEtcdDoesNotTake(t *testing.T) {
	b := start(t)
	s := service("a")
	s.Spec.ExternalName = strings.Repeat("x", 9<<20)
	if _, err := b.CreateTyped(t.Context(), s); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("got %v", err)
	}
}

// Validation that is interrupted because the client has gone may be incomplete:
// its errors must not be answered.
func TestValidationThatNobodyWaitsFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gaveUp := func() field.ErrorList {
		cancel()
		return field.ErrorList{field.InternalError(field.NewPath("spec"), ctx.Err())}
	}
	b := start(t, func(s *registry.Strategy[*corev1.Service]) {
		s.Create.Validate = func(_ context.Context, s *corev1.Service) field.ErrorList {
			if s.Name == "made" {
				return nil
			}
			return gaveUp()
		}
		s.Update.Validate = func(context.Context, *corev1.Service, *corev1.Service) field.ErrorList { return gaveUp() }
	})
	b.create(service("made"))
	if _, err := b.CreateTyped(ctx, service("web")); !apierrors.IsTimeout(err) {
		t.Errorf("create: %v, want that it was given up", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	_, _, err := b.Update(ctx, registry.Target{Namespace: "ns", Name: "made"}, func(obj core.Object) (core.Object, error) {
		return obj, nil
	}, registry.Admission{}, &metav1.UpdateOptions{})
	if !apierrors.IsTimeout(err) {
		t.Errorf("update: %v, want that it was given up", err)
	}
}

// A fault may quote the list that it is in: 1,000 of them would take gigabytes.
func TestFaultsThatQuoteMuch(t *testing.T) {
	list := []string{strings.Repeat("x", 1<<20)}
	var errs field.ErrorList
	for range 20 {
		errs = append(errs, field.Invalid(field.NewPath("spec"), list, "wrong"))
	}
	said := registry.Invalid(core.Pods.GVK().GroupKind(), "a", errs).Error()
	if len(said) > 5<<20 || !strings.Contains(said, "wrong") || !strings.HasSuffix(said, " and 17 more") {
		t.Errorf("%d bytes, at the end %q", len(said), said[len(said)-20:])
	}
	long := field.Invalid(field.NewPath("spec"), strings.Repeat("x", 6<<20), "wrong")
	said = registry.Invalid(core.Pods.GVK().GroupKind(), "a", field.ErrorList{long}).Error()
	if !strings.HasSuffix(said, "wrong") {
		t.Errorf("one fault: %q", said[len(said)-20:])
	}
}
