package customresources

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	apimachineryversion "k8s.io/apimachinery/pkg/version"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/customresourcedefinition"
	"kctl/proto/core"
)

type definition = customresourcedefinition.Definition

// entry is what is kept of a definition: enough to know what is served, and the
// encoded definition in case more is needed.
type entry struct {
	name     string
	revision int64
	uid      types.UID
	group    string
	names    apiextensionsv1.CustomResourceDefinitionNames // as accepted
	scoped   bool
	versions []version

	established, terminating bool
	// settled: the names are all accepted, and the status needs no more changes.
	settled bool
	// violations are why its schemas are not structural.
	violations string

	// encoded is shared with the cache of definitions.
	encoded []byte
	// store is the store of its objects. Versions of a definition that differ
	// only in status share it.
	store *instanceStore
	// creations are shared by all versions of a definition.
	creations *creations
	hash      [sha256.Size]byte
}

// version is what is known of one version without reading its schema.
type version struct {
	name                string
	served, storage     bool
	warning             string
	hasStatus, hasScale bool
	selectable          []string
}

// newEntry reads a definition. before is the earlier entry of that name.
func newEntry(item registry.Encoded, d *definition, before *entry) (*entry, error) {
	e := &entry{
		name: d.Name, revision: item.Revision, uid: d.UID, encoded: item.JSON,
		group: d.Spec.Group, names: d.Status.AcceptedNames, scoped: d.Spec.Scope == apiextensionsv1.NamespaceScoped,
		established: customresourcedefinition.IsConditionTrue(d, apiextensionsv1.Established),
		terminating: d.DeletionTimestamp != nil, creations: &creations{},
	}
	if before != nil && before.uid == e.uid {
		e.creations = before.creations
	}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		one := version{name: v.Name, served: v.Served, storage: v.Storage}
		if v.Deprecated {
			one.warning = deprecation(d, v)
		}
		for _, s := range v.SelectableFields {
			one.selectable = append(one.selectable, newSelectable(s.JSONPath).name)
		}
		if v.Subresources != nil {
			one.hasStatus, one.hasScale = v.Subresources.Status != nil, v.Subresources.Scale != nil
		}
		e.versions = append(e.versions, one)
	}
	spec, err := json.Marshal(&d.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode the spec of %s: %w", d.Name, err)
	}
	e.hash = sha256.Sum256(spec)
	same := before != nil && before.uid == e.uid && before.hash == e.hash
	if same {
		e.store, e.violations = before.store, before.violations
	} else {
		e.violations = violations(d)
	}
	e.settled = e.established && !e.terminating && sameNames(&d.Spec.Names, &d.Status.AcceptedNames) &&
		customresourcedefinition.IsConditionTrue(d, apiextensionsv1.NamesAccepted) && approvalIsCurrent(d) &&
		nonStructuralIsCurrent(d, e.violations, same && before.settled)
	e.creations.refused.Store(e.terminating)
	return e, nil
}

// deprecation is the warning for users of a version: by default, it names the best
// version to use instead.
func deprecation(d *definition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	best := v.Name
	for _, other := range d.Spec.Versions {
		if other.Served && !other.Deprecated && apimachineryversion.CompareKubeAwareVersionStrings(other.Name, best) > 0 {
			best = other.Name
		}
	}
	kind := d.Spec.Names.Kind
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Spec.Group, v.Name, kind)
	if best != v.Name {
		text += fmt.Sprintf("; use %s/%s %s", d.Spec.Group, best, kind)
	}
	return text
}

// decodeDefinition decodes the whole definition.
func (e *entry) decodeDefinition() (*definition, error) {
	d := &definition{}
	if err := json.Unmarshal(e.encoded, d); err != nil {
		return nil, fmt.Errorf("decode definition %s: %w", e.name, err)
	}
	customresourcedefinition.Default(d)
	return d, nil
}

// resource is the group, version and resource of a version.
func (e *entry) resource(version string) core.Resource {
	return core.Resource{Group: e.group, Version: version, Name: e.names.Plural, Kind: e.names.Kind, Namespaced: e.scoped}
}

// version is the zero version for a name that the definition does not have.
func (e *entry) version(name string) version {
	i := slices.IndexFunc(e.versions, func(v version) bool { return v.name == name })
	if i < 0 {
		return version{}
	}
	return e.versions[i]
}

func (e *entry) storageVersion() string {
	for _, v := range e.versions {
		if v.storage {
			return v.name
		}
	}
	return ""
}

func sameNames(a, b *apiextensionsv1.CustomResourceDefinitionNames) bool {
	return a.Plural == b.Plural && a.Singular == b.Singular && a.Kind == b.Kind && a.ListKind == b.ListKind &&
		slices.Equal(a.ShortNames, b.ShortNames) && slices.Equal(a.Categories, b.Categories)
}
