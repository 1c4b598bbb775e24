package read

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/describe"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// fetchRelated asks for what other objects say about the described one. What the user
// may not read, or the server does not have, is left out.
func (d *describeOptions) fetchRelated(ctx context.Context, object *unstructured.Unstructured) describe.Around {
	namespace := object.GetNamespace()
	switch object.GetAPIVersion() + "/" + object.GetKind() {
	case "v1/Service":
		return describe.Around{Endpoints: d.endpoints(ctx, namespace, object.GetName())}
	case "v1/Namespace":
		return d.fetchLimits(ctx, object.GetName())
	case "v1/PersistentVolumeClaim":
		return describe.Around{Pods: d.usersOf(ctx, namespace, object.GetName())}
	case "apps/v1/StatefulSet", "apps/v1/DaemonSet", "apps/v1/ReplicaSet", "v1/ReplicationController":
		return describe.Around{Pods: decoded[core.Pod](d.owned(ctx, "pods", object))}
	case "apps/v1/Deployment":
		return describe.Around{ReplicaSets: d.replicaSetsOf(ctx, object)}
	case "networking.k8s.io/v1/Ingress":
		return describe.Around{Backends: d.backends(ctx, object)}
	}
	return describe.Around{}
}

// listRelated lists a resource, given by its usual name.
func (d *describeOptions) listRelated(ctx context.Context, kind, namespace string, options ...rest.Option) []unstructured.Unstructured {
	discovery, err := d.Discovery()
	if err != nil {
		return nil
	}
	resource, err := discovery.Named(ctx, kind)
	if err != nil {
		return nil
	}
	client, err := d.Server()
	if err != nil {
		return nil
	}
	found, err := lookup.List(ctx, client.Resource(resource.Resource, namespace), d.Chunk(), options...)
	if err != nil {
		return nil
	}
	return found.Items
}

// relatedTo is listRelated, decoded.
func relatedTo[T any](ctx context.Context, d *describeOptions, kind, namespace string, options ...rest.Option) []T {
	return decoded[T](d.listRelated(ctx, kind, namespace, options...))
}

// decoded are those of the objects that can be decoded.
func decoded[T any](objects []unstructured.Unstructured) []T {
	var all []T
	for i := range objects {
		one := new(T)
		if lookup.Typed(&objects[i], one) == nil {
			all = append(all, *one)
		}
	}
	return all
}

func (d *describeOptions) fetchLimits(ctx context.Context, namespace string) describe.Around {
	return describe.Around{
		Quotas: relatedTo[corev1.ResourceQuota](ctx, d, "resourcequotas", namespace),
		Limits: relatedTo[corev1.LimitRange](ctx, d, "limitranges", namespace),
	}
}

// owned are the objects of a kind that a workload manages.
func (d *describeOptions) owned(ctx context.Context, kind string, owner *unstructured.Unstructured) []unstructured.Unstructured {
	selector, err := lookup.SelectorOf(owner)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(d.listRelated(ctx, kind, owner.GetNamespace(), rest.LabelSelector(selector)),
		func(object unstructured.Unstructured) bool {
			return !metav1.IsControlledBy(&object, owner)
		})
}

func (d *describeOptions) replicaSetsOf(ctx context.Context, deployment *unstructured.Unstructured) []unstructured.Unstructured {
	sets := d.owned(ctx, "replicasets.apps", deployment)
	slices.SortFunc(sets, func(a, b unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
	})
	return sets
}

// usersOf are the pods that use a claim.
func (d *describeOptions) usersOf(ctx context.Context, namespace, claim string) []core.Pod {
	return slices.DeleteFunc(relatedTo[core.Pod](ctx, d, "pods", namespace), func(pod core.Pod) bool {
		return !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		})
	})
}

// backends are the endpoints of each service that an ingress leads to.
func (d *describeOptions) backends(ctx context.Context, object *unstructured.Unstructured) map[string]string {
	client, err := d.Server()
	if err != nil {
		return nil
	}
	all := map[string]string{}
	for _, backend := range describe.BackendsOf(object) {
		service := &corev1.Service{}
		if err := client.Resource(core.Services, object.GetNamespace()).Get(ctx, backend.Name, service); err != nil {
			text := err.Error()
			if apierrors.IsNotFound(err) {
				text = fmt.Sprintf("services %q not found", backend.Name)
			}
			all[backend.Key()] = "<error: " + text + ">"
			continue
		}
		named := ""
		for _, port := range service.Spec.Ports {
			if port.Port == backend.Port.Number || port.Name != "" && port.Name == backend.Port.Name {
				named = port.Name
			}
		}
		all[backend.Key()] = d.endpoints(ctx, service.Namespace, service.Name).Of(named)
	}
	return all
}

// endpoints are where a service's ports lead: what its slices say.
func (d *describeOptions) endpoints(ctx context.Context, namespace, service string) describe.Endpoints {
	var found describe.Endpoints
	of := rest.LabelSelector(discoveryv1.LabelServiceName + "=" + service)
	for _, slice := range relatedTo[discoveryv1.EndpointSlice](ctx, d, "endpointslices.discovery.k8s.io", namespace, of) {
		if found == nil {
			found = describe.Endpoints{}
		}
		for _, port := range slice.Ports {
			if port.Port == nil || port.Name == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if !ptr.Deref(endpoint.Conditions.Ready, true) || len(endpoint.Addresses) == 0 {
					continue
				}
				found[*port.Name] = append(found[*port.Name], net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port))))
			}
		}
	}
	return found
}
