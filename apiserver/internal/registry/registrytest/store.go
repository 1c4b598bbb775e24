package registrytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// Store holds objects of one resource.
type Store struct {
	resource core.Resource

	mu       sync.Mutex
	revision int64
	objects  map[string]core.Object
	watchers map[*watcher]bool
	failure  error
}

var _ registry.Resource = (*Store)(nil)

// New returns a store that holds objects.
func New(resource core.Resource, objects ...core.Object) *Store {
	s := &Store{resource: resource, objects: map[string]core.Object{}, watchers: map[*watcher]bool{}}
	for _, obj := range objects {
		s.Put(obj)
	}
	return s
}

func key(namespace, name string) string { return namespace + "/" + name }

// Put creates or replaces an object.
func (s *Store) Put(obj core.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(obj)
}

func (s *Store) put(obj core.Object) {
	s.revision++
	obj = obj.DeepCopyObject().(core.Object)
	obj.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	k := key(obj.GetNamespace(), obj.GetName())
	kind := "ADDED"
	if s.objects[k] != nil {
		kind = "MODIFIED"
	}
	s.objects[k] = obj
	s.send(kind, obj)
}

// Peek returns the object, or nil.
func (s *Store) Peek(namespace, name string) core.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj := s.objects[key(namespace, name)]; obj != nil {
		return obj.DeepCopyObject().(core.Object)
	}
	return nil
}

// Fail makes every call fail with err until it is nil, and ends all watches.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	for w := range s.watchers {
		s.end(w)
	}
}

type watcher struct {
	events chan registry.WatchEvent
	fields fields.Selector
}

// Events implements registry.Watcher.
func (w *watcher) Events() iter.Seq2[registry.WatchEvent, bool] {
	return func(yield func(registry.WatchEvent, bool) bool) {
		for event := range w.events {
			if !yield(event, len(w.events) > 0) {
				return
			}
		}
	}
}

// watchBuffer is more than any test writes without reading.
const watchBuffer = 1024

func (s *Store) send(kind string, obj core.Object) {
	for w := range s.watchers {
		if selects(w.fields, obj) {
			w.events <- registry.WatchEvent{Type: kind, Object: s.encode(obj)}
		}
	}
}

func (s *Store) end(w *watcher) {
	if s.watchers[w] {
		delete(s.watchers, w)
		close(w.events)
	}
}

func selects(selector fields.Selector, obj core.Object) bool {
	if selector == nil {
		return true
	}
	values := fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}
	if secret, ok := obj.(*core.Secret); ok {
		values["type"] = string(secret.Type)
	}
	return selector.Matches(values)
}

func (s *Store) encode(obj core.Object) registry.Encoded {
	text, err := json.Marshal(obj)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", obj, err))
	}
	revision, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("revision of %T: %v", obj, err))
	}
	return registry.Encoded{JSON: text, Revision: revision}
}

func (s *Store) notFound(name string) error {
	return apierrors.NewNotFound(s.resource.GVR().GroupResource(), name)
}

// Info implements registry.Resource.
func (s *Store) Info() registry.Info {
	return registry.Info{Resource: s.resource, FieldTracker: managedfields.New(managedfields.Options{
		Kind:   s.resource.GVK(),
		Schema: func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeOf(s.New())) },
		New:    s.New,
		Clock:  clock.RealClock{},
	})}
}

// New implements registry.Resource.
func (s *Store) New() core.Object {
	obj, err := scheme.Scheme.New(s.resource.GVK())
	if err != nil {
		panic(err)
	}
	return obj.(core.Object)
}

// Default implements registry.Resource.
func (s *Store) Default(core.Object) {}

// Row implements registry.Resource.
func (s *Store) Row(obj core.Object) []any { return []any{obj.GetName()} }

// Decode implements registry.Resource.
func (s *Store) Decode(e registry.Encoded) (core.Object, error) {
	obj := s.New()
	return obj, json.Unmarshal(e.JSON, obj)
}

// Get implements registry.Resource.
func (s *Store) Get(_ context.Context, namespace, name, _ string) (registry.Encoded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := s.objects[key(namespace, name)]
	if obj == nil || s.failure != nil {
		return registry.Encoded{}, errors.Join(s.failure, s.notFound(name))
	}
	return s.encode(obj), nil
}

// List implements registry.Resource.
func (s *Store) List(_ context.Context, namespace string, o registry.ListOptions) (registry.List, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return registry.List{}, s.failure
	}
	list := registry.List{ResourceVersion: strconv.FormatInt(s.revision, 10)}
	for _, k := range slices.Sorted(maps.Keys(s.objects)) { // as etcd has them
		obj := s.objects[k]
		if (namespace == "" || obj.GetNamespace() == namespace) && selects(o.Fields, obj) {
			list.Items = append(list.Items, s.encode(obj))
		}
	}
	return list, nil
}

// Watch implements registry.Resource, starting from the present state.
func (s *Store) Watch(ctx context.Context, _ string, o registry.ListOptions) (registry.Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	if o.ResourceVersion != strconv.FormatInt(s.revision, 10) {
		return nil, apierrors.NewResourceExpired("this store keeps no history")
	}
	w := &watcher{events: make(chan registry.WatchEvent, watchBuffer), fields: o.Fields}
	s.watchers[w] = true
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end(w)
	})
	return w, nil
}

// Create implements registry.Resource.
func (s *Store) Create(_ context.Context, obj core.Object, _ registry.Admission, _ *metav1.CreateOptions) (registry.Encoded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key(obj.GetNamespace(), obj.GetName())] != nil {
		return registry.Encoded{}, apierrors.NewAlreadyExists(s.resource.GVR().GroupResource(), obj.GetName())
	}
	s.put(obj)
	return s.encode(s.objects[key(obj.GetNamespace(), obj.GetName())]), nil
}

// Update implements registry.Resource; all subresources change the whole object.
func (s *Store) Update(_ context.Context, target registry.Target, change registry.Transform, _ registry.Admission,
	_ *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.objects[key(target.Namespace, target.Name)]
	if current == nil {
		return registry.Encoded{}, false, s.notFound(target.Name)
	}
	before := s.encode(current)
	changed, err := change(current.DeepCopyObject().(core.Object))
	if err != nil {
		return registry.Encoded{}, false, err
	}
	if version := changed.GetResourceVersion(); version != "" && version != current.GetResourceVersion() {
		return registry.Encoded{}, false, apierrors.NewConflict(s.resource.GVR().GroupResource(), target.Name, errors.New("another version"))
	}
	if after := s.encode(changed); string(after.JSON) != string(before.JSON) {
		s.put(changed)
	}
	return s.encode(s.objects[key(target.Namespace, target.Name)]), false, nil
}

// Delete implements registry.Resource, without a grace period.
func (s *Store) Delete(_ context.Context, namespace, name string, _ registry.Admission,
	o *metav1.DeleteOptions) (registry.Encoded, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := s.objects[key(namespace, name)]
	if obj == nil {
		return registry.Encoded{}, false, s.notFound(name)
	}
	if o.Preconditions != nil && o.Preconditions.UID != nil && *o.Preconditions.UID != obj.GetUID() {
		return registry.Encoded{}, false, apierrors.NewConflict(s.resource.GVR().GroupResource(), name, errors.New("another uid"))
	}
	s.revision++
	delete(s.objects, key(namespace, name))
	obj.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.send("DELETED", obj)
	return s.encode(obj), true, nil
}

// DeleteCollection implements registry.Resource.
func (s *Store) DeleteCollection(ctx context.Context, namespace string, admit registry.Admission, o *metav1.DeleteOptions,
	list registry.ListOptions) (registry.List, error) {
	found, err := s.List(ctx, namespace, list)
	if err != nil {
		return found, err
	}
	for _, item := range found.Items {
		obj, err := s.Decode(item)
		if err != nil {
			return found, err
		}
		if _, _, err := s.Delete(ctx, obj.GetNamespace(), obj.GetName(), admit, o); err != nil && !apierrors.IsNotFound(err) {
			return found, err
		}
	}
	return found, nil
}
