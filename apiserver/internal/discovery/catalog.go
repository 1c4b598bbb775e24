package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"kctl/apiserver/internal/registry"
)

// Resource is one resource as it is served.
type Resource struct {
	registry.Info
	Verbs        []string
	Subresources []Subresource
}

// Subresource is one subresource as it is served. Kind is what is sent to it;
// the zero Kind is the resource's own.
type Subresource struct {
	Name  string
	Kind  schema.GroupVersionKind
	Verbs []string
}

// standardVerbs are those of a resource that is stored.
var standardVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// StatusVerbs are those of a part of an object that is read and written like
// the object.
var StatusVerbs = []string{"get", "patch", "update"}

// Remote is a group and version that another server serves.
type Remote struct {
	schema.GroupVersion
	// Discovery is that server's discovery; nil if it does not answer.
	Discovery *apidiscoveryv2.APIVersionDiscovery
}

// groupVersion is what is served under one group and version, ordered by name.
type groupVersion struct {
	schema.GroupVersion
	resources []Resource
	remote    *Remote
	priority  Priority
	own       bool // has resources that the server always serves
}

// collect sorts everything into groups and versions, in the order in which
// clients see them. Others' resources are not added to the server's own groups
// and versions.
func collect(own []Resource, more More) []groupVersion {
	c := collection{index: map[schema.GroupVersion]int{}, priorities: more.Priorities}
	for _, r := range own {
		at := c.find(r.GVR().GroupVersion()) // before c.all is read, which it may replace
		gv := &c.all[at]
		gv.resources, gv.own = append(gv.resources, r), true
	}
	builtin := len(c.all)
	for i := range more.Remote {
		if at := c.find(more.Remote[i].GroupVersion); at >= builtin && c.all[at].remote == nil {
			c.all[at].remote = &more.Remote[i]
		}
	}
	taken := len(c.all)
	for _, r := range more.Resources {
		if at := c.find(r.GVR().GroupVersion()); at >= taken {
			c.all[at].resources = append(c.all[at].resources, r)
		}
	}
	sortGroups(c.all)
	for _, gv := range c.all {
		slices.SortFunc(gv.resources, func(a, b Resource) int { return cmp.Compare(a.Name, b.Name) })
	}
	return c.all
}

// collection is the groups and versions that have been found so far.
type collection struct {
	all        []groupVersion
	index      map[schema.GroupVersion]int
	priorities map[string]Priority
}

// find returns the index of a group and version, which it adds if it is new.
func (c *collection) find(gv schema.GroupVersion) int {
	if i, ok := c.index[gv]; ok {
		return i
	}
	priority, ok := c.priorities[gv.String()]
	if !ok {
		priority = DefaultPriority(gv)
	}
	c.index[gv] = len(c.all)
	c.all = append(c.all, groupVersion{GroupVersion: gv, priority: priority})
	return c.index[gv]
}

// sortGroups sorts groups by the highest priority of their versions, and equal
// ones by name.
func sortGroups(all []groupVersion) {
	groups := map[string]int32{}
	for _, gv := range all {
		groups[gv.Group] = max(groups[gv.Group], gv.priority.Group)
	}
	slices.SortStableFunc(all, func(a, b groupVersion) int {
		if a.Group != b.Group {
			return cmp.Or(cmp.Compare(groups[b.Group], groups[a.Group]), cmp.Compare(a.Group, b.Group))
		}
		return cmp.Or(cmp.Compare(b.priority.Version, a.priority.Version), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
}

// resourceList is the document of one group and version.
func resourceList(gv groupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	if gv.Group != "" {
		list.APIVersion = "v1" // upstream leaves it out for the core group
	}
	for _, r := range gv.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories, StorageVersionHash: storageHash(r.StoredAs),
		})
		for _, s := range r.Subresources {
			sub := metav1.APIResource{Name: r.Name + "/" + s.Name, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: s.Verbs}
			if !s.Kind.Empty() {
				sub.Kind = s.Kind.Kind
				if s.Kind.GroupVersion() != gv.GroupVersion {
					sub.Group, sub.Version = s.Kind.Group, s.Kind.Version
				}
			}
			list.APIResources = append(list.APIResources, sub)
		}
	}
	return list
}

// storageHash only tells clients whether objects are stored in the same form as
// before.
func storageHash(kind schema.GroupVersionKind) string {
	if kind.Empty() {
		return ""
	}
	sum := sha256.Sum256([]byte(kind.Group + "/" + kind.Version + "/" + kind.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// groupList is the document of all groups with a name.
func groupList(all []groupVersion) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, gv := range all {
		if gv.Group == "" {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if n := len(list.Groups); n > 0 && list.Groups[n-1].Name == gv.Group {
			list.Groups[n-1].Versions = append(list.Groups[n-1].Versions, version)
			continue
		}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		})
	}
	return list
}
