package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

var (
	create = &metav1.CreateOptions{}
	now    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// strategy uses a little of everything: services stand in for a kind with
// graceful deletion.
func strategy() registry.Strategy[*corev1.Service] {
	return registry.Strategy[*corev1.Service]{
		Resource: core.Services, Singular: "service", StoragePrefix: "services/specs",
		New: func() *corev1.Service { return &corev1.Service{} },
		Default: func(s *corev1.Service) {
			if s.Spec.Type == "" {
				s.Spec.Type = corev1.ServiceTypeClusterIP
			}
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*corev1.Service]{
			Prepare: func(_ context.Context, s *corev1.Service) { s.Status = corev1.ServiceStatus{} },
			Validate: func(_ context.Context, s *corev1.Service) field.ErrorList {
				if s.Spec.ExternalName == "bad" {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "externalName"), "bad", "is bad")}
				}
				return nil
			},
			Warnings: func(context.Context, *corev1.Service) []string { return []string{"be careful"} },
		},
		Update: registry.UpdateStrategy[*corev1.Service]{
			Prepare: func(_ context.Context, s, old *corev1.Service) { s.Status = old.Status },
			Validate: func(_ context.Context, s, old *corev1.Service) field.ErrorList {
				if s.Spec.Type != old.Spec.Type {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "type"), s.Spec.Type, "field is immutable")}
				}
				return nil
			},
		},
		Status: &registry.UpdateStrategy[*corev1.Service]{
			Prepare: func(_ context.Context, s, old *corev1.Service) { s.Spec = old.Spec },
		},
		Subresources: map[string]registry.UpdateStrategy[*corev1.Service]{"quiet": {KeepsGeneration: true}},
		Delete: registry.DeleteStrategy[*corev1.Service]{
			GracePeriod: func(_ *corev1.Service, asked *int64) (int64, bool) {
				seconds := ptr.Deref(asked, 30)
				return seconds, seconds > 0
			},
			Held: func(s *corev1.Service) bool { return s.Spec.ExternalName == "held" },
		},
		Read: registry.ReadStrategy[*corev1.Service]{
			Fields: func(s *corev1.Service) fields.Set { return fields.Set{"spec.type": string(s.Spec.Type)} },
		},
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

// put updates obj like a PUT request.
func (b *bed) put(obj *corev1.Service) (*corev1.Service, error) {
	e, _, err := b.Update(b.t.Context(), registry.Target{Namespace: obj.Namespace, Name: obj.Name}, func(core.Object) (core.Object, error) {
		return obj.DeepCopy(), nil
	}, registry.Admission{}, &metav1.UpdateOptions{})
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
	e, gone, err := b.Delete(b.t.Context(), "ns", name, registry.Admission{}, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.read(e), gone
}

func (b *bed) stored(name string) (*corev1.Service, error) {
	return registry.GetStored[*corev1.Service](b.t.Context(), b.Store, "ns", name)
}

func (b *bed) exists(name string) bool {
	b.t.Helper()
	_, err := b.stored(name)
	if err != nil && !apierrors.IsNotFound(err) {
		b.t.Fatal(err)
	}
	return err == nil
}
