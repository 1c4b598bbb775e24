package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// aggregated asks for everything in one answer; servers that can't, answer in
// the old way, group by group.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

func fetch(ctx context.Context, client *rest.Client) ([]Resource, error) {
	var all []Resource
	for _, root := range []string{"/api", "/apis"} {
		var answer []byte
		err := client.Do(ctx, http.MethodGet, root, nil, &answer, rest.Accept(aggregated))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		resources, err := decode(ctx, client, root, answer)
		if err != nil {
			return nil, err
		}
		all = append(all, resources...)
	}
	if len(all) == 0 {
		return nil, errors.New("the server serves no resources: is it a Kubernetes API server?")
	}
	return all, nil
}

func decode(ctx context.Context, client *rest.Client, root string, answer []byte) ([]Resource, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(answer, &kind); err != nil {
		return nil, fmt.Errorf("GET %s: the answer is not JSON (is it a Kubernetes API server?): %w", root, err)
	}
	switch kind.Kind {
	case "APIGroupDiscoveryList":
		var list discoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(answer, &list); err != nil {
			return nil, fmt.Errorf("GET %s: decode answer: %w", root, err)
		}
		return fromAggregated(list), nil
	case "APIVersions":
		var versions metav1.APIVersions
		if err := json.Unmarshal(answer, &versions); err != nil {
			return nil, fmt.Errorf("GET %s: decode answer: %w", root, err)
		}
		return groupVersions(ctx, client, root, "", versions.Versions)
	case "APIGroupList":
		var groups metav1.APIGroupList
		if err := json.Unmarshal(answer, &groups); err != nil {
			return nil, fmt.Errorf("GET %s: decode answer: %w", root, err)
		}
		var all []Resource
		for _, group := range groups.Groups {
			resources, err := groupVersions(ctx, client, root+"/"+group.Name, group.Name, byPreference(group))
			if err != nil {
				return nil, err
			}
			all = append(all, resources...)
		}
		return all, nil
	}
	return nil, fmt.Errorf("GET %s: the answer is of kind %q (is it a Kubernetes API server?)", root, kind.Kind)
}

func fromAggregated(list discoveryv2.APIGroupDiscoveryList) []Resource {
	var all []Resource
	for _, group := range list.Items {
		seen := map[string]bool{}
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				if r.ResponseKind == nil {
					continue
				}
				resource := Resource{
					Resource: core.Resource{
						Group: group.Name, Version: version.Version, Name: r.Resource,
						Kind: r.ResponseKind.Kind, Namespaced: r.Scope == discoveryv2.ScopeNamespace,
					},
					Singular: cmp.Or(r.SingularResource, strings.ToLower(r.ResponseKind.Kind)), ShortNames: r.ShortNames,
					Verbs: r.Verbs, Categories: r.Categories, Preferred: !seen[r.Resource],
				}
				for _, sub := range r.Subresources {
					resource.Subresources = append(resource.Subresources, sub.Subresource)
				}
				seen[r.Resource] = true
				all = append(all, resource)
			}
		}
	}
	return all
}

func byPreference(group metav1.APIGroup) []string {
	versions := []string{group.PreferredVersion.Version}
	for _, v := range group.Versions {
		if v.Version != group.PreferredVersion.Version {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

// groupVersions asks for the resources of each version of a group. A version
// that can't be had (its server is down, say) is left out, as kubectl does, so
// that the others can be used.
func groupVersions(ctx context.Context, client *rest.Client, root, group string, versions []string) ([]Resource, error) {
	var all []Resource
	seen := map[string]bool{}
	for _, version := range versions {
		var list metav1.APIResourceList
		err := client.Do(ctx, http.MethodGet, root+"/"+version, nil, &list)
		if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		gv := schema.GroupVersion{Group: group, Version: version}
		for _, resource := range fromLegacy(list, gv) {
			resource.Preferred = !seen[resource.Name]
			all = append(all, resource)
		}
		for _, resource := range all {
			seen[resource.Name] = true
		}
	}
	return all, nil
}

func fromLegacy(list metav1.APIResourceList, gv schema.GroupVersion) []Resource {
	var resources []Resource
	position := map[string]int{}
	for _, r := range list.APIResources {
		parent, sub, isSub := strings.Cut(r.Name, "/")
		if isSub {
			if i, ok := position[parent]; ok {
				resources[i].Subresources = append(resources[i].Subresources, sub)
			}
			continue
		}
		position[r.Name] = len(resources)
		resources = append(resources, Resource{
			Resource: core.Resource{Group: gv.Group, Version: gv.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced},
			Singular: cmp.Or(r.SingularName, strings.ToLower(r.Kind)), ShortNames: r.ShortNames, Verbs: r.Verbs, Categories: r.Categories,
		})
	}
	return resources
}
