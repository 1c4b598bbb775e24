package customresources

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/apiserver/internal/customresources/structural"
	"kctl/apiserver/internal/customresources/validationrules"
	"kctl/apiserver/internal/registry"
)

type object = unstructured.Unstructured

// instanceStore is the store of one definition's objects, made when first needed.
type instanceStore struct {
	definitions *Definitions
	ctx         context.Context
	cancel      context.CancelFunc
	creations   *creations

	once sync.Once
	err  error
	// base stores the objects, by the rules of the storage version.
	base      *registry.Store[*object]
	built     atomic.Bool
	versions  map[string]*compiledVersion
	converter *converter
	resources map[string]registry.Served
}

// creations are those of a definition's objects. All stores that it has had share them: a
// request goes on with the one it began with.
type creations struct {
	// refused: the definition has been deleted.
	refused atomic.Bool
	// underWay counts the objects that are being created. One that began before the definition
	// was deleted may be stored after the others have been.
	underWay atomic.Int32
}

// compiledVersion is one version, ready for use.
type compiledVersion struct {
	name   string
	group  string
	kind   string
	props  *apiextensionsv1.CustomResourceDefinitionVersion
	schema *structural.Schema // nil for none, in definitions from before v1
	// publishable: clients are told of the schema, and objects merged by it.
	publishable bool
	// preserves is the definition's spec.preserveUnknownFields.
	preserves        bool
	rules            *validationrules.Rules
	columns          *columns
	scale            *scalePaths
	selectableFields []selectable
	// prefix is the beginning of its objects' JSON.
	prefix string
}

func newInstanceStore(d *Definitions, c *creations) *instanceStore {
	s := &instanceStore{definitions: d, creations: c}
	s.ctx, s.cancel = context.WithCancel(d.ctx)
	return s
}

// close ends the watches and drops the cache.
func (s *instanceStore) close() { s.cancel() }

// served is the resource of a version, and its subresources.
func (s *instanceStore) served(e *entry, version string) (registry.Served, error) {
	s.once.Do(func() { s.err = s.build(e) })
	if s.err != nil {
		return registry.Served{}, s.err
	}
	return s.resources[version], nil
}

func (s *instanceStore) build(e *entry) error {
	d, err := e.decodeDefinition()
	if err != nil {
		return err
	}
	s.versions, s.resources = map[string]*compiledVersion{}, map[string]registry.Served{}
	for i := range d.Spec.Versions {
		f, err := compileVersion(d, &d.Spec.Versions[i])
		if err != nil {
			return fmt.Errorf("%s, version %s: %w", d.Name, d.Spec.Versions[i].Name, err)
		}
		s.versions[f.name] = f
	}
	c := newConverter(d, s.versions, s.definitions.options)
	s.converter = c
	storage := s.versions[e.storageVersion()]
	s.base = registry.NewStore(c.strategy(e, storage, storage, s.definitions.options.Registry.Clock), s.definitions.options.Registry)
	for name, f := range s.versions {
		var keeps versionStore = s.base
		if name != storage.name || len(d.Spec.Versions) > 1 {
			store := s.base
			if name != storage.name {
				store = s.base.WithStrategy(c.strategy(e, f, storage, s.definitions.options.Registry.Clock))
			}
			keeps = &convertedStore{Store: store, converter: c, version: f}
		}
		served := registry.Served{Resource: &resource{versionStore: keeps, stored: s, info: e.info(name)}}
		if f.scale != nil {
			scale := f.scale.subresource(served.Resource, replicasIn(s.versions), s.definitions.options.Registry.Clock)
			served.Subresources = append(served.Subresources, scale)
		}
		s.resources[name] = served
	}
	c.linkFields(s.resources)
	s.definitions.start(func() { _ = s.base.Run(s.ctx) }) // ends with its context, and with nothing else
	s.built.Store(true)
	return nil
}

// measure is that of the stored objects; nothing, as long as nobody has asked for them.
func (s *instanceStore) measure(namespace string, mostObjects, mostBytes int) (objects, bytes int) {
	if !s.built.Load() {
		return 0, 0
	}
	return s.base.Measure(namespace, mostObjects, mostBytes)
}

func compileVersion(d *definition, v *apiextensionsv1.CustomResourceDefinitionVersion) (*compiledVersion, error) {
	f := &compiledVersion{
		name: v.Name, group: d.Spec.Group, kind: d.Spec.Names.Kind, props: v, preserves: d.Spec.PreserveUnknownFields,
		columns: newColumns(v.AdditionalPrinterColumns),
		prefix:  fmt.Sprintf(`{"apiVersion":%q,`, d.Spec.Group+"/"+v.Name),
	}
	var err error
	if v.Schema != nil {
		if f.schema, err = structural.Compile(v.Schema.OpenAPIV3Schema); err != nil {
			return nil, err
		}
		if f.rules, err = validationrules.Compile(f.schema); err != nil {
			return nil, err
		}
		f.publishable = f.schema != nil && structural.Publishable(v.Schema.OpenAPIV3Schema)
	}
	if v.Subresources != nil && v.Subresources.Scale != nil {
		f.scale = newScalePaths(v.Subresources.Scale)
	}
	for _, s := range v.SelectableFields {
		f.selectableFields = append(f.selectableFields, newSelectable(s.JSONPath))
	}
	return f, nil
}

func (f *compiledVersion) apiVersion() string { return f.group + "/" + f.name }

func (f *compiledVersion) hasStatus() bool {
	return f.props.Subresources != nil && f.props.Subresources.Status != nil
}

// normalize defaults and prunes an object by the schema, and repairs its metadata.
func (f *compiledVersion) normalize(o *object) {
	f.prune(o.Object, false)
	f.schema.Repair(o.Object)
	f.complete(o.Object)
}

// isNormal reports whether it is certain that normalize would leave an encoded object as
// it is.
func (f *compiledVersion) isNormal(value []byte) bool {
	return f.schema.Settled(value, structural.Changes{Prune: !f.preserves, Nulls: !f.preserves, Defaults: true, Metadata: true})
}

// complete fills in defaults, and drops nulls that are not allowed, unless the definition keeps everything.
func (f *compiledVersion) complete(content map[string]any) {
	if f.preserves {
		f.schema.Default(content)
		return
	}
	f.schema.Complete(content)
}

// prune drops unknown fields, and returns them if asked; it drops nothing
// without a schema, or if the definition keeps everything, as those stored
// before apiextensions.k8s.io/v1 may.
func (f *compiledVersion) prune(content map[string]any, tell bool) []string {
	if f.schema == nil || f.preserves {
		return nil
	}
	return f.schema.Prune(content, tell)
}
