package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/core"
)

// Options are what all Stores are built with.
type Options struct {
	Storage storage.Interface
	// Reflector keeps the stores in step with storage; a store without one watches by
	// itself.
	Reflector *cache.Reflector
	// Prefix of every key; "/registry" if empty.
	Prefix string
	// OnPrefix, if not nil, is called with the resource to which the keys with prefix
	// belong.
	OnPrefix     func(prefix, group, resource string)
	CacheMetrics *measured.CacheMetrics // nil where nobody measures
	// Conversions bounds those of lists to other versions.
	Conversions Conversions
	Clock       clock.WithTicker
	Logger      *zap.Logger
}

// Complete fills in defaults.
func (o Options) Complete() Options {
	o.Prefix = cmp.Or(o.Prefix, "/registry")
	return o
}

// WithReflector returns the options with one reflector for all stores that are built with
// them. The caller runs it.
func (o Options) WithReflector() Options {
	o = o.Complete()
	o.Reflector = cache.NewReflector(cache.ReflectorOptions{Storage: o.Storage, Prefix: o.Prefix + "/", Clock: o.Clock, Logger: o.Logger})
	return o
}

// Store keeps the objects of one resource. It is a Resource.
type Store[T core.Object] struct {
	strategy Strategy[T]
	storage  storage.Interface
	cache    *cache.Cache
	clock    clock.WithTicker
	logger   *zap.Logger
	prefix   string // of the keys, with a slash at the end
	// selectable are the field names that selectors may use.
	selectable  sets.Set[string]
	tracker     *managedfields.Tracker
	conversions Conversions
}

var _ Resource = (*Store[*core.Pod])(nil)

// NewStore returns the store of a resource. It answers once Run runs.
func NewStore[T core.Object](strategy Strategy[T], o Options) *Store[T] {
	o = o.Complete()
	o.Storage = measured.Of(strategy.Resource.GVR().GroupResource(), o.Storage)
	strategy.StoragePrefix = cmp.Or(strategy.StoragePrefix, strategy.Resource.Name)
	if strategy.New == nil {
		object := reflect.TypeFor[T]().Elem()
		strategy.New = func() T { return reflect.New(object).Interface().(T) }
	}
	s := &Store[T]{
		strategy:   strategy,
		storage:    o.Storage,
		clock:      o.Clock,
		logger:     o.Logger.With(zap.String("resource", strategy.Resource.Name)),
		prefix:     o.Prefix + "/" + strategy.StoragePrefix + "/",
		selectable: selectableOf(&strategy),

		conversions: o.Conversions,
	}
	s.tracker = s.newTracker()
	s.cache = s.newCache(o)
	if o.OnPrefix != nil {
		o.OnPrefix(s.prefix, strategy.Resource.Group, strategy.Resource.Name)
	}
	return s
}

func (s *Store[T]) newCache(o Options) *cache.Cache {
	c := cache.Options{
		Storage:    o.Storage,
		Reflector:  o.Reflector,
		Prefix:     s.prefix,
		Namespaced: s.strategy.Resource.Namespaced,
		Kind:       s.strategy.Resource.GVK(),
		Clock:      o.Clock,
		Logger:     s.logger,
	}
	if s.strategy.Read.Fields != nil {
		c.Fields = s.fieldsOf
	}
	if m, of := o.CacheMetrics, s.strategy.Resource; m != nil {
		c.ReceivedEvents = m.Received.WithLabelValues(of.Group, of.Name)
		c.ReadWaited = func(d time.Duration) { m.ReadWaits.WithLabelValues(of.Group, of.Name).Observe(d.Seconds()) }
	}
	if s.strategy.Encoding != nil {
		c.Normalize = s.strategy.Encoding.NormalizeStored
	}
	return cache.New(c)
}

// WithStrategy returns a store of the same objects with other rules: another version
// of a custom resource. Only the original store is run.
func (s *Store[T]) WithStrategy(strategy Strategy[T]) *Store[T] {
	view := *s
	view.strategy = strategy
	view.selectable = selectableOf(&strategy)
	view.tracker = view.newTracker()
	return &view
}

// selectableOf are the fields by which objects can be selected.
func selectableOf[T core.Object](strategy *Strategy[T]) sets.Set[string] {
	names := sets.New("metadata.name")
	if strategy.Resource.Namespaced || strategy.Read.Fields == nil && strategy.Encoding == nil {
		names.Insert("metadata.namespace")
	}
	if strategy.Read.Fields != nil {
		names = names.Union(sets.KeySet(strategy.Read.Fields(strategy.New())))
	}
	return names
}

func (s *Store[T]) newTracker() *managedfields.Tracker {
	o := managedfields.Options{
		Kind:    s.strategy.Resource.GVK(),
		Schema:  func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeFor[T]()) },
		New:     s.New,
		Default: s.Default,
		Reset:   s.resetFields(),
		Clock:   s.clock,
	}
	if s.strategy.Encoding != nil {
		o.Schema, o.Custom = s.strategy.Encoding.MergeSchema, true
		o.Settle = s.settle
	}
	return managedfields.New(o)
}

func (s *Store[T]) settle(obj core.Object) error {
	if own, ok := obj.(T); ok {
		return s.strategy.Encoding.Settle(own)
	}
	return nil
}

// LastChangeRevision is the revision of the last change of any of the store's objects that
// has been seen.
func (s *Store[T]) LastChangeRevision() int64 { return s.cache.LastChangeRevision() }

// Run keeps the store's cache in step with storage until ctx ends.
func (s *Store[T]) Run(ctx context.Context) error { return s.cache.Run(ctx) }

// Ready returns why the store cannot answer yet, or (cache.ErrHeldBack) no longer can;
// nil while it can.
func (s *Store[T]) Ready() error {
	if err := s.cache.Ready(); err != nil {
		return fmt.Errorf("%s: %w", s.strategy.Resource.Name, err)
	}
	return nil
}

// WaitReady waits until the store can answer. If it is held back, it returns an error
// that is cache.ErrHeldBack.
func (s *Store[T]) WaitReady(ctx context.Context) error {
	for {
		err := s.cache.WaitReady(ctx)
		if !errors.Is(err, cache.ErrNotReady) {
			return err
		}
	}
}

// Info implements Resource.
func (s *Store[T]) Info() Info {
	columns := s.strategy.Read.Columns
	if s.strategy.Read.Row == nil {
		columns = defaultColumns
	}
	var compare func(a, b core.Object) int
	if s.strategy.Read.CompareRows != nil {
		compare = func(a, b core.Object) int { return s.strategy.Read.CompareRows(a.(T), b.(T)) }
	}
	return Info{
		Resource:     s.strategy.Resource,
		Singular:     s.strategy.Singular,
		ShortNames:   s.strategy.ShortNames,
		Categories:   s.strategy.Categories,
		StoredAs:     s.strategy.Resource.GVK(),
		Verbs:        s.strategy.Verbs,
		HasStatus:    s.strategy.Status != nil,
		Subresources: s.subresourceNames(),
		Columns:      columns,
		CompareRows:  compare,
		FieldTracker: s.tracker,
		JSONOnly:     s.strategy.Encoding != nil,

		ReturnDeletedObject: s.strategy.Delete.ReturnDeletedObject,
	}
}

// resetFields are the fields that no manager comes to own through this way of
// writing.
func (s *Store[T]) resetFields() map[string][]string {
	out := map[string][]string{}
	reset := func(way string, names ...string) {
		if len(names) > 0 { // the tracker has a schema for each way that is named
			out[way] = append(out[way], names...)
		}
	}
	if status := s.strategy.Status; status != nil {
		reset("", "status")
		reset("status", "spec")
		if status.KeepsMetadata {
			reset("status", "metadata")
		}
		reset("status", status.ResetFields...)
	}
	reset("", s.strategy.Update.ResetFields...)
	for name, way := range s.strategy.Subresources {
		reset(name, way.ResetFields...)
	}
	return out
}

func (s *Store[T]) subresourceNames() []string {
	var out []string
	for name, way := range s.strategy.Subresources {
		if !way.Internal {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// New implements Resource.
func (s *Store[T]) New() core.Object { return s.strategy.New() }

// Default implements Resource. The objects of subresources (a Binding) have no defaults
// here.
func (s *Store[T]) Default(obj core.Object) {
	if own, ok := obj.(T); ok && s.strategy.Default != nil {
		s.strategy.Default(own)
	}
}

// Unreadable returns why obj can't be read although each of its fields can.
func (s *Store[T]) Unreadable(obj core.Object) error {
	if own, ok := obj.(T); ok && s.strategy.Read.Unreadable != nil {
		return s.strategy.Read.Unreadable(own)
	}
	return nil
}

var defaultColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

// Row implements Resource.
func (s *Store[T]) Row(obj core.Object) []any {
	if s.strategy.Read.Row != nil {
		return s.strategy.Read.Row(obj.(T))
	}
	age := "<unknown>"
	if created := obj.GetCreationTimestamp(); !created.IsZero() {
		age = duration.HumanDuration(s.clock.Since(created.Time))
	}
	return []any{obj.GetName(), age}
}

// key is where the object is stored; without a name, the prefix of the
// namespace's keys.
func (s *Store[T]) key(namespace, name string) string {
	if s.strategy.Resource.Namespaced && namespace != "" {
		return s.prefix + namespace + "/" + name
	}
	return s.prefix + name
}

// Names returns the names of all objects that the cache has now, as namespace/name
// for those in a namespace.
func (s *Store[T]) Names() iter.Seq[string] {
	list := s.cache.List(cache.Page{Selection: cache.Selection{Prefix: s.prefix}})
	return func(yield func(string) bool) {
		for _, e := range list.Entries {
			if !yield(e.Key[len(s.prefix):]) {
				return
			}
		}
	}
}

// CacheStats returns what the cache holds and has done.
func (s *Store[T]) CacheStats() cache.Stats { return s.cache.Stats() }

// Measure returns how many objects there are in a namespace, or in all ("") of
// them, and how many bytes they have, up to the bounds.
func (s *Store[T]) Measure(namespace string, mostObjects, mostBytes int) (objects, bytes int) {
	return s.cache.Measure(s.key(namespace, ""), mostObjects, mostBytes)
}

// boundConversions implements shownStore.
func (s *Store[T]) boundConversions() Conversions { return s.conversions }

func (s *Store[T]) groupResource() schema.GroupResource {
	return s.strategy.Resource.GVR().GroupResource()
}

func (s *Store[T]) groupKind() schema.GroupKind { return s.strategy.Resource.GVK().GroupKind() }

// kindOf is the kind by which errors refer to an object: its own claim if there is no
// Go type.
func (s *Store[T]) kindOf(obj T) schema.GroupKind {
	if s.strategy.Encoding == nil {
		return s.groupKind()
	}
	return obj.GetObjectKind().GroupVersionKind().GroupKind()
}

func (s *Store[T]) ttl(obj T) time.Duration {
	if s.strategy.TTL == nil {
		return 0
	}
	return s.strategy.TTL(obj)
}
