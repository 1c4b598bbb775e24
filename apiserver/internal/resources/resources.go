package resources

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/configmap"
	"kctl/apiserver/internal/resources/endpoints"
	"kctl/apiserver/internal/resources/event"
	"kctl/apiserver/internal/resources/kubelet"
	"kctl/apiserver/internal/resources/lease"
	"kctl/apiserver/internal/resources/namespace"
	"kctl/apiserver/internal/resources/node"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/priorityclass"
	"kctl/apiserver/internal/resources/rbac"
	"kctl/apiserver/internal/resources/runtimeclass"
	"kctl/apiserver/internal/resources/secret"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/resources/serviceaccount"
	"kctl/proto/core"
)

// Set is the store of every resource.
type Set struct {
	Namespaces          *registry.Store[*core.Namespace]
	Nodes               *registry.Store[*core.Node]
	Pods                *registry.Store[*core.Pod]
	Events              *registry.Store[*core.Event]
	ConfigMaps          *registry.Store[*core.ConfigMap]
	Secrets             *registry.Store[*core.Secret]
	ServiceAccounts     *registry.Store[*core.ServiceAccount]
	Leases              *registry.Store[*core.Lease]
	PodTemplates        *registry.Store[*corev1.PodTemplate]
	Services            *service.Store
	IPAddresses         *registry.Store[*networkingv1.IPAddress]
	Endpoints           *registry.Store[*corev1.Endpoints] //nolint:staticcheck // old clients still use it
	EndpointSlices      *registry.Store[*discoveryv1.EndpointSlice]
	RuntimeClasses      *registry.Store[*nodev1.RuntimeClass]
	PriorityClasses     *registry.Store[*schedulingv1.PriorityClass]
	Roles               *registry.Store[*rbacv1.Role]
	RoleBindings        *registry.Store[*rbacv1.RoleBinding]
	ClusterRoles        *registry.Store[*rbacv1.ClusterRole]
	ClusterRoleBindings *registry.Store[*rbacv1.ClusterRoleBinding]

	binder  *pod.Binder
	options registry.Options
}

// New returns the stores over o.Storage. They answer once Run runs. Events go
// by themselves after eventTTL; services get what they need from ranges.
func New(o registry.Options, eventTTL time.Duration, ranges service.Ranges) *Set {
	set := &Set{
		Namespaces:          registry.NewStore(namespace.Strategy(o.Clock), o),
		Nodes:               registry.NewStore(node.Strategy(o.Clock), o),
		Pods:                registry.NewStore(pod.Strategy(o.Clock), o),
		Events:              registry.NewStore(event.Strategy(o.Clock, eventTTL), o),
		ConfigMaps:          registry.NewStore(configmap.Strategy(o.Clock), o),
		Secrets:             registry.NewStore(secret.Strategy(o.Clock), o),
		ServiceAccounts:     registry.NewStore(serviceaccount.Strategy(o.Clock), o),
		Leases:              registry.NewStore(lease.Strategy(o.Clock), o),
		PodTemplates:        registry.NewStore(pod.Templates(), o),
		IPAddresses:         registry.NewStore(service.Addresses(), o),
		Endpoints:           registry.NewStore(endpoints.Endpoints(o.Clock), o),
		EndpointSlices:      registry.NewStore(endpoints.Slices(o.Clock), o),
		RuntimeClasses:      registry.NewStore(runtimeclass.Strategy(o.Clock), o),
		PriorityClasses:     registry.NewStore(priorityclass.Strategy(o.Clock), o),
		Roles:               registry.NewStore(rbac.Roles(), o),
		RoleBindings:        registry.NewStore(rbac.RoleBindings(o.Clock), o),
		ClusterRoles:        registry.NewStore(rbac.ClusterRoles(), o),
		ClusterRoleBindings: registry.NewStore(rbac.ClusterRoleBindings(o.Clock), o),
		options:             o,
	}
	set.Services = service.NewStore(set.IPAddresses, ranges, o)
	set.binder = pod.NewBinder(set.Pods, o.Clock)
	return set
}

// store is what a Set does with each store, whatever it holds.
type store interface {
	registry.Resource
	Run(ctx context.Context) error
	Ready() error
	WaitReady(ctx context.Context) error
}

func (s *Set) stores() []store {
	return []store{
		s.Namespaces, s.Nodes, s.Pods, s.Events, s.ConfigMaps, s.Secrets, s.ServiceAccounts, s.Leases,
		s.PodTemplates, s.RuntimeClasses, s.PriorityClasses, s.Services, s.IPAddresses, s.Endpoints, s.EndpointSlices,
		s.Roles, s.RoleBindings, s.ClusterRoles, s.ClusterRoleBindings,
	}
}

// Run keeps every store in step with storage until ctx ends.
func (s *Set) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	for _, store := range s.stores() {
		running.Go(func() error { return store.Run(ctx) })
	}
	return running.Wait()
}

// Ready tells which stores cannot answer yet; nil once all can.
func (s *Set) Ready() error {
	var errs []error
	for _, store := range s.stores() {
		errs = append(errs, store.Ready())
	}
	return errors.Join(errs...)
}

// WaitReady waits until every store can answer.
func (s *Set) WaitReady(ctx context.Context) error {
	for _, store := range s.stores() {
		if err := store.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Bindings is the place where Bindings can be posted beside pods/binding, and
// what answers there.
func (s *Set) Bindings() (core.Resource, registry.Subresource) {
	return pod.Bindings, s.binder.Subresource()
}

// Served lists the stores with their subresources. kubelets is how logs and
// streams reach nodes; without an issuer there are no tokens to ask for.
func (s *Set) Served(kubelets *kubelet.Client, issuer serviceaccount.Issuer) []registry.Served {
	streams := pod.NewStreams(s.Pods, s.Nodes, kubelets)
	subresources := map[registry.Resource][]registry.Subresource{
		s.Pods: {
			s.binder.Subresource(), pod.Eviction(s.Pods, s.options.Clock),
			streams.Log(), streams.Exec(), streams.Attach(), streams.PortForward(),
		},
	}
	if issuer != nil {
		subresources[s.ServiceAccounts] = []registry.Subresource{
			serviceaccount.Token(issuer, serviceaccount.TokenSources{
				ServiceAccounts: s.ServiceAccounts, Pods: s.Pods, Secrets: s.Secrets, Nodes: s.Nodes,
			}),
		}
	}
	var served []registry.Served
	for _, store := range s.stores() {
		served = append(served, registry.Served{Resource: store, Subresources: subresources[store]})
	}
	return served
}
