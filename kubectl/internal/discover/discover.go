package discover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// Resource is a resource that a server serves.
type Resource struct {
	core.Resource
	Singular     string   `json:"singular,omitempty"`
	ShortNames   []string `json:"shortNames,omitempty"`
	Verbs        []string `json:"verbs,omitempty"`
	Categories   []string `json:"categories,omitempty"`
	Subresources []string `json:"subresources,omitempty"`
	// Preferred tells that the group would have the resource used in this version.
	Preferred bool `json:"preferred,omitempty"`
}

// GroupVersion is "v1" or "group/v1".
func (r Resource) GroupVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// FullName is "pods", or "leases.coordination.k8s.io".
func (r Resource) FullName() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// Can tells whether the resource has a verb.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Has tells whether the resource has a subresource.
func (r Resource) Has(subresource string) bool { return slices.Contains(r.Subresources, subresource) }

func (r Resource) hasName(name string) bool {
	return r.Name == name || r.Singular == name || strings.ToLower(r.Kind) == name
}

func (r Resource) hasShortName(name string) bool { return slices.Contains(r.ShortNames, name) }

// Discovery answers from its file as long as that is fresh, and asks the server
// when something is missing from it.
type Discovery struct {
	client *rest.Client
	cache  Cache

	resources []Resource
	fresh     bool // asked from the server just now

	// Warn, if not nil, is called for short names that mean more than one resource.
	Warn func(format string, args ...any)
}

// New makes a Discovery; it asks nothing yet.
func New(client *rest.Client, cache Cache) *Discovery {
	return &Discovery{client: client, cache: cache}
}

// Resources is all that the server serves, in the server's order: groups by
// preference, versions by preference.
func (d *Discovery) Resources(ctx context.Context) ([]Resource, error) {
	if d.resources != nil {
		return d.resources, nil
	}
	if resources, ok := d.cache.read(); ok {
		d.resources = resources
		return resources, nil
	}
	return d.Refresh(ctx)
}

// Refresh asks the server, whatever the file says.
func (d *Discovery) Refresh(ctx context.Context) ([]Resource, error) {
	resources, err := fetch(ctx, d.client)
	if err != nil {
		return nil, err
	}
	d.resources, d.fresh = resources, true
	d.cache.write(resources)
	return resources, nil
}

// Served is OfKind by what the server has said, whatever the file says.
func (d *Discovery) Served(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	if !d.fresh {
		if _, err := d.Refresh(ctx); err != nil {
			return Resource{}, err
		}
	}
	return d.OfKind(ctx, kind)
}

// Distrust makes the next search that finds nothing, and Served, ask the server again.
func (d *Discovery) Distrust() { d.fresh = false }

// find looks through the resources, and if that fails once more through a fresh
// list, since the server may serve more than when the file was written.
func (d *Discovery) find(ctx context.Context, matches ...func(Resource) bool) (Resource, bool, error) {
	resources, err := d.Resources(ctx)
	if err != nil {
		return Resource{}, false, err
	}
	if found, ok := firstMatch(resources, matches); ok || d.fresh {
		return found, ok, nil
	}
	if resources, err = d.Refresh(ctx); err != nil {
		return Resource{}, false, err
	}
	found, ok := firstMatch(resources, matches)
	return found, ok, nil
}

// firstMatch is the first resource that any of the matches finds, tried in order.
func firstMatch(resources []Resource, matches []func(Resource) bool) (Resource, bool) {
	for _, match := range matches {
		for _, r := range resources {
			if match(r) {
				return r, true
			}
		}
	}
	return Resource{}, false
}

// NoResourceError says that no resource has a name.
type NoResourceError struct{ Name, Group string }

func (e *NoResourceError) Error() string {
	if e.Group != "" {
		return fmt.Sprintf("the server doesn't have a resource type %q in group %q", e.Name, e.Group)
	}
	return fmt.Sprintf("the server doesn't have a resource type %q", e.Name)
}

// NoKindError says that the server does not serve a kind.
type NoKindError struct{ Kind schema.GroupVersionKind }

func (e *NoKindError) Error() string {
	return fmt.Sprintf("no matches for kind %q in version %q", e.Kind.Kind, e.Kind.GroupVersion())
}

// Named finds a resource by the name a user gave: plural, singular or short, alone
// or as NAME.GROUP or NAME.VERSION.GROUP. Names come before short names, and a
// group may be abbreviated to its beginning, as in kubectl.
func (d *Discovery) Named(ctx context.Context, name string) (Resource, error) {
	base, rest, dotted := strings.Cut(strings.ToLower(name), ".")
	version, group, versioned := strings.Cut(rest, ".")
	var matches []func(Resource) bool
	either := func(in func(Resource) bool) {
		matches = append(matches,
			func(r Resource) bool { return r.hasName(base) && in(r) },
			func(r Resource) bool { return r.hasShortName(base) && in(r) })
	}
	if dotted {
		either(func(r Resource) bool { return r.Group == rest && r.Preferred })
		if versioned { // what has one dot is never a version: pods.v1 is in a group v1
			either(func(r Resource) bool { return r.Version == version && r.Group == group })
		}
		if rest != "" {
			either(func(r Resource) bool { return strings.HasPrefix(r.Group, rest) && r.Preferred })
		}
	} else {
		either(func(r Resource) bool { return r.Preferred })
	}
	found, ok, err := d.find(ctx, matches...)
	if err != nil {
		return found, err
	}
	if !ok {
		return found, &NoResourceError{Name: base, Group: rest}
	}
	if !dotted && !found.hasName(base) {
		d.warnAmbiguous(found, base)
	}
	return found, nil
}

// warnAmbiguous names the resources that a short name could mean, too.
func (d *Discovery) warnAmbiguous(found Resource, short string) {
	for _, r := range d.resources {
		if d.Warn != nil && r.Preferred && r.hasShortName(short) && r.FullName() != found.FullName() {
			d.Warn("short name %q could also match lower priority resource %s", short, r.FullName())
		}
	}
}

// OfKind finds the resource of objects of a kind.
func (d *Discovery) OfKind(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	found, ok, err := d.find(ctx, func(r Resource) bool { return r.GVK() == kind })
	if err != nil {
		return found, err
	}
	if !ok {
		return found, &NoKindError{Kind: kind}
	}
	return found, nil
}

// OfGroupKind finds the resource of a kind, in the version that the server prefers.
func (d *Discovery) OfGroupKind(ctx context.Context, kind schema.GroupKind) (Resource, error) {
	found, ok, err := d.find(ctx, func(r Resource) bool { return r.Preferred && r.GVK().GroupKind() == kind })
	if err != nil {
		return found, err
	}
	if !ok {
		return found, fmt.Errorf("no matches for kind %q in group %q", kind.Kind, kind.Group)
	}
	return found, nil
}

// InCategory finds the resources of a category, such as "all".
func (d *Discovery) InCategory(ctx context.Context, category string) ([]Resource, error) {
	resources, err := d.Resources(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(resources), func(r Resource) bool {
		return !r.Preferred || !slices.Contains(r.Categories, category)
	}), nil
}
