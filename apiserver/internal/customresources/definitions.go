package customresources

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apimachineryversion "k8s.io/apimachinery/pkg/version"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/core"
)

// Options are what Definitions are built from.
type Options struct {
	// Store keeps the definitions.
	Store *registry.Store[*definition]
	// Registry are the options of the objects' stores.
	Registry registry.Options
	// Webhooks is how those that convert are reached.
	Webhooks webhookclient.Access

	converted *conversions
}

// Definitions are all definitions, and what they define. They are safe for
// concurrent use.
type Definitions struct {
	options Options
	logger  *zap.Logger
	ctx     context.Context
	// running are the stores of objects; start and stop go through runningMu, because
	// nothing may begin once Run waits for them.
	runningMu sync.Mutex
	running   sync.WaitGroup
	cancel    context.CancelFunc

	// Listeners are told when what is served may have changed.
	informer.Listeners

	mu      sync.Mutex
	current atomic.Pointer[snapshot]
}

// snapshot is the state at one time.
type snapshot struct {
	changed int64 // of the store of definitions
	entries map[string]*entry
	served  map[schema.GroupVersionResource]*entry
	unread  error // some definitions are not among the entries, or not in their present state
}

// New returns Definitions. What they define is served at once; Run maintains
// their status.
func New(o Options) *Definitions {
	o.converted = newConversions()
	d := &Definitions{options: o, logger: o.Registry.Logger.Named("customresources")}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.current.Store(&snapshot{changed: -1})
	return d
}

// snapshot is the present state according to the cache of definitions: a client
// that has seen a definition finds it served.
func (d *Definitions) snapshot() *snapshot {
	if s := d.current.Load(); s.changed == d.options.Store.LastChangeRevision() {
		return s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.current.Load()
	if d.options.Store.Ready() != nil {
		return before // a list would wait
	}
	// Read before the list: the next call sees what comes in between.
	changed := d.options.Store.LastChangeRevision()
	if before.changed == changed {
		return before
	}
	list, err := d.options.Store.List(d.ctx, "", registry.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return before // not read yet
	}
	s := &snapshot{changed: changed, entries: make(map[string]*entry, len(list.Items)), served: map[schema.GroupVersionResource]*entry{}}
	for _, item := range list.Items {
		e, err := d.updatedEntry(item, before)
		if err != nil {
			s.unread = fmt.Errorf("definition %s: %w", nameOf(item), err)
		}
		if e == nil {
			continue
		}
		s.entries[e.name] = e
		for _, v := range e.versions {
			if v.served && e.established {
				s.served[e.resource(v.name).GVR()] = e
			}
		}
	}
	for name, e := range before.entries {
		if now := s.entries[name]; now == nil || now.store != e.store {
			e.store.close()
		}
	}
	d.current.Store(s)
	return s
}

// updatedEntry returns the entry of one encoded definition; with an error, the one that was
// known before, if any.
func (d *Definitions) updatedEntry(item registry.Encoded, before *snapshot) (*entry, error) {
	name := nameOf(item)
	known := before.entries[name]
	if known != nil && known.revision == item.Revision {
		return known, nil
	}
	obj, err := d.options.Store.Decode(item)
	if err != nil {
		d.logger.Error("a definition can't be read", zap.String("definition", name), zap.Error(err))
		return known, err
	}
	e, err := newEntry(item, obj.(*definition), known)
	if err != nil {
		d.logger.Error("a definition can't be read", zap.String("definition", name), zap.Error(err))
		return known, err
	}
	if e.store == nil {
		e.store = newInstanceStore(d, e.creations)
	}
	return e, nil
}

// Lookup returns what is served under a group, version and plural name; ok is false if
// nothing is. It waits until the definitions have been read; those read before the cache was
// held back are served.
func (d *Definitions) Lookup(ctx context.Context,
	gvr schema.GroupVersionResource) (served registry.Served, warning string, ok bool, err error) {
	unread := d.options.Store.WaitReady(ctx)
	e := d.snapshot().served[gvr]
	if e == nil {
		return registry.Served{}, "", unread != nil, unread
	}
	served, err = e.store.served(e, gvr.Version)
	v := e.version(gvr.Version)
	return served, v.warning, true, err
}

// Unread says why some definitions may be missing from what GroupVersions and Infos return
// afterwards; nil if none is. Who takes what is missing for deleted asks first.
func (d *Definitions) Unread() error {
	if err := d.options.Store.Ready(); err != nil {
		return err
	}
	s := d.snapshot()
	if s.changed < 0 {
		return cache.ErrNotReady
	}
	return s.unread
}

// Serves reports whether anything is served under a group, version and plural name,
// as far as is known without waiting.
func (d *Definitions) Serves(gvr schema.GroupVersionResource) bool {
	return d.snapshot().served[gvr] != nil
}

// Measure returns how many objects a namespace, or all ("") of them, has of what is served
// under a group, version and plural name, and how many bytes, up to the bounds. It
// returns 0 as long as nobody has asked for the objects.
func (d *Definitions) Measure(gvr schema.GroupVersionResource, namespace string, mostObjects, mostBytes int) (objects, bytes int) {
	e := d.snapshot().served[gvr]
	if e == nil {
		return 0, 0
	}
	return e.store.measure(namespace, mostObjects, mostBytes)
}

// CacheStats yields the resources that somebody has asked for, with what their caches tell.
func (d *Definitions) CacheStats(yield func(core.Resource, cache.Stats) bool) {
	for _, e := range d.snapshot().entries {
		if e.store.built.Load() && !yield(e.resource(e.storageVersion()), e.store.base.CacheStats()) {
			return
		}
	}
}

// GroupVersions are those in which anything is served, in no particular order.
func (d *Definitions) GroupVersions() []schema.GroupVersion {
	found := sets.Set[schema.GroupVersion]{}
	for gvr := range d.snapshot().served {
		found.Insert(gvr.GroupVersion())
	}
	return found.UnsortedList()
}

// Changed is a number that changes with what is served.
func (d *Definitions) Changed() int64 { return d.snapshot().changed }

// Info describes one version of a custom resource.
type Info struct {
	registry.Info
	HasScale bool
	// Selectable are the fields by which objects can be selected.
	Selectable []string
	// Terminating: the definition is being deleted, and nothing new may be written.
	Terminating bool
	// Hash changes with what the definition says, and Schema reads the objects' schema in the
	// state of the definition that the Hash is of.
	Hash   [sha256.Size]byte
	Schema func() *apiextensionsv1.JSONSchemaProps
}

// Infos describe what is served, ordered by group, version and name, without
// creating stores.
func (d *Definitions) Infos() []Info {
	s := d.snapshot()
	var out []Info
	for gvr, e := range s.served {
		v := e.version(gvr.Version)
		out = append(out, Info{e.info(gvr.Version), v.hasScale, v.selectable, e.terminating, e.hash, func() *apiextensionsv1.JSONSchemaProps {
			return e.schema(gvr.Version)
		}})
	}
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), apimachineryversion.CompareKubeAwareVersionStrings(b.Version, a.Version),
			strings.Compare(a.Name, b.Name))
	})
	return out
}

func (e *entry) info(version string) registry.Info {
	v := e.version(version)
	return registry.Info{
		Resource: e.resource(version), ListKind: e.names.ListKind, Singular: e.names.Singular, ShortNames: e.names.ShortNames,
		Categories: e.names.Categories,
		HasStatus:  v.hasStatus, JSONOnly: true, StoredAs: e.resource(e.storageVersion()).GVK(),
	}
}

// Resources are the stores of all served custom resources, each once. missing says why there may
// be others with objects, nil if there are none: who takes what is missing for deleted heeds it.
func (d *Definitions) Resources() (out []registry.Resource, missing error) {
	missing = d.Unread()
	s := d.snapshot()
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		e := s.entries[name]
		if !e.established {
			continue
		}
		served, err := e.store.served(e, e.storageVersion())
		if err != nil {
			d.logger.Error("a custom resource can't be served", zap.String("definition", name), zap.Error(err))
			missing = fmt.Errorf("definition %s: %w", name, err)
			continue
		}
		out = append(out, served.Resource)
	}
	return out, missing
}

// schema reads what clients are told of the objects' schema in a version, nil for nothing.
func (e *entry) schema(version string) *apiextensionsv1.JSONSchemaProps {
	def, err := e.decodeDefinition()
	if err != nil {
		return nil
	}
	for i := range def.Spec.Versions {
		if v := &def.Spec.Versions[i]; v.Name == version && v.Schema != nil {
			return published(v.Schema.OpenAPIV3Schema, def.Spec.PreserveUnknownFields)
		}
	}
	return nil
}
