package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
)

// Resource is one resource as it is served.
type Resource struct {
	registry.Info
	Verbs        []string
	Subresources []Subresource
}

// Subresource is one part of a resource as it is served. Kind is what is sent
// to it; the zero Kind is the resource's own.
type Subresource struct {
	Name  string
	Kind  schema.GroupVersionKind
	Verbs []string
}

// StandardVerbs are those of a resource that is stored.
var StandardVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// StatusVerbs are those of a part of an object that is read and written as the
// object is.
var StatusVerbs = []string{"get", "patch", "update"}

// groupVersion is what is served under one group and version, in order of name.
type groupVersion struct {
	schema.GroupVersion
	resources []Resource
}

// byGroupVersion sorts resources into their groups: the group without a name
// first, the others by name, versions as given.
func byGroupVersion(resources []Resource) []groupVersion {
	var out []groupVersion
	for _, r := range resources {
		gv := r.GVR().GroupVersion()
		i := slices.IndexFunc(out, func(have groupVersion) bool { return have.GroupVersion == gv })
		if i < 0 {
			i = len(out)
			out = append(out, groupVersion{GroupVersion: gv})
		}
		out[i].resources = append(out[i].resources, r)
	}
	slices.SortStableFunc(out, func(a, b groupVersion) int { return cmp.Compare(a.Group, b.Group) })
	for _, gv := range out {
		slices.SortFunc(gv.resources, func(a, b Resource) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

// resourceList is the document of one group and version.
func resourceList(gv groupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	if gv.Group != "" {
		list.APIVersion = "v1" // upstream leaves it out for the group without a name
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

// storageHash tells clients no more than whether objects are stored in the
// same form as before.
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
