package resources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/admissionregistration"
	"kctl/apiserver/internal/resources/apiservice"
	"kctl/apiserver/internal/resources/apps"
	"kctl/apiserver/internal/resources/autoscaling"
	"kctl/apiserver/internal/resources/batch"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
	"kctl/apiserver/internal/resources/clustertrustbundle"
	"kctl/apiserver/internal/resources/componentstatus"
	"kctl/apiserver/internal/resources/configmap"
	"kctl/apiserver/internal/resources/customresourcedefinition"
	"kctl/apiserver/internal/resources/device"
	"kctl/apiserver/internal/resources/disruptionbudget"
	"kctl/apiserver/internal/resources/endpoints"
	"kctl/apiserver/internal/resources/event"
	"kctl/apiserver/internal/resources/flowcontrol"
	"kctl/apiserver/internal/resources/lease"
	"kctl/apiserver/internal/resources/limitrange"
	"kctl/apiserver/internal/resources/namespace"
	"kctl/apiserver/internal/resources/networking"
	"kctl/apiserver/internal/resources/node"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/podcertificaterequest"
	"kctl/apiserver/internal/resources/priorityclass"
	"kctl/apiserver/internal/resources/proxy"
	"kctl/apiserver/internal/resources/rbac"
	"kctl/apiserver/internal/resources/replicationcontroller"
	"kctl/apiserver/internal/resources/resourcequota"
	"kctl/apiserver/internal/resources/runtimeclass"
	"kctl/apiserver/internal/resources/secret"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/resources/serviceaccount"
	"kctl/apiserver/internal/resources/storage"
	"kctl/apiserver/internal/resources/storagemigration"
	"kctl/apiserver/internal/resources/volume"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// servedOnly are the folders whose resources the server only serves, one line each.
// What the server itself reads or writes has a field in Set instead.
var servedOnly = []func(o registry.Options) []registry.Served{
	pod.ServedTemplates,
	certificatesigningrequest.Served,
	clustertrustbundle.Served,
	podcertificaterequest.Served,
	componentstatus.Served,
	replicationcontroller.Served,
	apps.Served,
	batch.Served,
	autoscaling.Served,
	networking.Served,
	storage.Served,
	storagemigration.Served,
	device.Served,
}

// Set is every resource, and typed access to the stores that the server itself
// reads and writes.
type Set struct {
	Namespaces          *registry.Store[*core.Namespace]
	Nodes               *registry.Store[*core.Node]
	Pods                *registry.Store[*core.Pod]
	Events              *registry.Store[*core.Event]
	ConfigMaps          *registry.Store[*core.ConfigMap]
	Secrets             *registry.Store[*core.Secret]
	ServiceAccounts     *registry.Store[*core.ServiceAccount]
	Leases              *registry.Store[*core.Lease]
	Services            *service.Store
	IPAddresses         *registry.Store[*networkingv1.IPAddress]
	Endpoints           *registry.Store[*corev1.Endpoints] //nolint:staticcheck // old clients still use it
	EndpointSlices      *registry.Store[*discoveryv1.EndpointSlice]
	ServiceCIDRs        *registry.Store[*networkingv1.ServiceCIDR]
	IngressClasses      *registry.Store[*networkingv1.IngressClass]
	StorageClasses      *registry.Store[*storagev1.StorageClass]
	CSIDrivers          *registry.Store[*storagev1.CSIDriver]
	Claims              *registry.Store[*corev1.PersistentVolumeClaim]
	Volumes             *registry.Store[*corev1.PersistentVolume]
	FlowSchemas         *registry.Store[*flowcontrolv1.FlowSchema]
	PriorityLevels      *registry.Store[*flowcontrolv1.PriorityLevelConfiguration]
	RuntimeClasses      *registry.Store[*nodev1.RuntimeClass]
	PriorityClasses     *registry.Store[*schedulingv1.PriorityClass]
	LimitRanges         *registry.Store[*corev1.LimitRange]
	ResourceQuotas      *registry.Store[*corev1.ResourceQuota]
	DisruptionBudgets   *registry.Store[*policyv1.PodDisruptionBudget]
	APIServices         *registry.Store[*apiservice.APIService]
	Definitions         *registry.Store[*customresourcedefinition.Definition]
	Roles               *registry.Store[*rbacv1.Role]
	RoleBindings        *registry.Store[*rbacv1.RoleBinding]
	ClusterRoles        *registry.Store[*rbacv1.ClusterRole]
	ClusterRoleBindings *registry.Store[*rbacv1.ClusterRoleBinding]
	ValidatingWebhooks  *registry.Store[*admissionregistrationv1.ValidatingWebhookConfiguration]
	MutatingWebhooks    *registry.Store[*admissionregistrationv1.MutatingWebhookConfiguration]
	ValidatingPolicies  *registry.Store[*admissionregistrationv1.ValidatingAdmissionPolicy]
	ValidatingBindings  *registry.Store[*admissionregistrationv1.ValidatingAdmissionPolicyBinding]
	MutatingPolicies    *registry.Store[*admissionregistrationv1.MutatingAdmissionPolicy]
	MutatingBindings    *registry.Store[*admissionregistrationv1.MutatingAdmissionPolicyBinding]

	binder  *pod.Binder
	options registry.Options
	served  []registry.Served
}

// New returns the resources on o.Storage. They answer once Run runs. Events
// expire after eventTTL; services get addresses and ports from ranges.
func New(o registry.Options, eventTTL time.Duration, ranges service.Ranges) *Set {
	o = o.WithReflector()
	s := &Set{options: o}
	s.Namespaces = addStore(s, namespace.Strategy(o.Clock))
	s.Nodes = addStore(s, node.Strategy(o.Clock))
	s.Pods = addStore(s, pod.Strategy(o.Clock))
	s.Events = addStore(s, event.Strategy(o.Clock, eventTTL))
	s.served = append(s.served, registry.Serve(event.EventsV1(s.Events))...)
	s.ConfigMaps = addStore(s, configmap.Strategy(o.Clock))
	s.Secrets = addStore(s, secret.Strategy(o.Clock))
	s.ServiceAccounts = addStore(s, serviceaccount.Strategy(o.Clock))
	s.Leases = addStore(s, lease.Strategy(o.Clock))
	s.IPAddresses = addStore(s, service.Addresses())
	s.Endpoints = addStore(s, endpoints.Endpoints(o.Clock))
	s.EndpointSlices = addStore(s, endpoints.Slices(o.Clock))
	s.ServiceCIDRs = addStore(s, networking.ServiceCIDRs(o.Clock))
	s.IngressClasses = addStore(s, networking.IngressClasses(o.Clock))
	s.StorageClasses = addStore(s, storage.Classes(o.Clock))
	s.CSIDrivers = addStore(s, storage.Drivers(o.Clock))
	s.Claims = addStore(s, volume.ClaimStrategy(o.Clock))
	s.Volumes = addStore(s, volume.Strategy(o.Clock))
	s.FlowSchemas = addStore(s, flowcontrol.Schemas(o.Clock))
	s.PriorityLevels = addStore(s, flowcontrol.Levels(o.Clock))
	s.RuntimeClasses = addStore(s, runtimeclass.Strategy(o.Clock))
	s.PriorityClasses = addStore(s, priorityclass.Strategy(o.Clock))
	s.LimitRanges = addStore(s, limitrange.Strategy())
	s.ResourceQuotas = addStore(s, resourcequota.Strategy(o.Clock))
	s.DisruptionBudgets = addStore(s, disruptionbudget.Strategy(o.Clock))
	s.APIServices = addStore(s, apiservice.Strategy(o.Clock))
	s.Definitions = addStore(s, customresourcedefinition.Strategy(o.Clock))
	s.Roles = addStore(s, rbac.Roles())
	s.RoleBindings = addStore(s, rbac.RoleBindings(o.Clock))
	s.ClusterRoles = addStore(s, rbac.ClusterRoles())
	s.ClusterRoleBindings = addStore(s, rbac.ClusterRoleBindings(o.Clock))
	s.ValidatingWebhooks = addStore(s, admissionregistration.ValidatingWebhooks(o.Clock))
	s.MutatingWebhooks = addStore(s, admissionregistration.MutatingWebhooks(o.Clock))
	s.ValidatingPolicies = addStore(s, admissionregistration.ValidatingPolicies(o.Clock))
	s.ValidatingBindings = addStore(s, admissionregistration.ValidatingBindings(o.Clock))
	s.MutatingPolicies = addStore(s, admissionregistration.MutatingPolicies(o.Clock))
	s.MutatingBindings = addStore(s, admissionregistration.MutatingBindings(o.Clock))
	s.Services = service.NewStore(s.IPAddresses, s.ServiceCIDRs, ranges, o)
	s.binder = pod.NewBinder(s.Pods, o.Clock)
	s.served = append(s.served, registry.Serve(s.Services)...)
	for _, room := range servedOnly {
		s.served = append(s.served, room(o)...)
	}
	return s
}

// Options are those of the set's stores: the set also keeps other stores that
// are built with them in step with storage.
func (s *Set) Options() registry.Options { return s.options }

// Store is the store of a built-in resource, or nil if there is none.
func (s *Set) Store(r core.Resource) registry.Resource {
	for _, served := range s.served {
		if served.Resource.Info().Resource == r {
			return served.Resource
		}
	}
	return nil
}

// Find reads an object of a built-in resource, as registry.Find does.
func (s *Set) Find(ctx context.Context, r core.Resource, namespace, name string) (core.Object, error) {
	store := s.Store(r)
	if store == nil {
		return nil, fmt.Errorf("no built-in resource is %s", r.GVR())
	}
	return registry.Find[core.Object](ctx, store, namespace, name)
}

// addStore makes a resource's store and adds it to the set.
func addStore[T core.Object](s *Set, strategy registry.Strategy[T]) *registry.Store[T] {
	store := registry.NewStore(strategy, s.options)
	s.served = append(s.served, registry.Serve(store)...)
	return store
}

// runner is a store as the Set runs it. A resource that only shows another's
// objects has nothing to run.
type runner interface {
	Run(ctx context.Context) error
	Ready() error
	WaitReady(ctx context.Context) error
}

func (s *Set) runners() []runner {
	var out []runner
	for _, served := range s.served {
		if r, ok := served.Resource.(runner); ok {
			out = append(out, r)
		}
	}
	return out
}

// Run keeps every store in step with storage until ctx ends.
func (s *Set) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return s.options.Reflector.Run(ctx) })
	for _, store := range s.runners() {
		running.Go(func() error { return store.Run(ctx) })
	}
	return running.Wait()
}

// Ready returns which stores cannot answer yet; nil once all can that are not held back.
func (s *Set) Ready() error {
	var errs []error
	for _, store := range s.runners() {
		if err := store.Ready(); !errors.Is(err, cache.ErrHeldBack) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// HeldBack are the etcd prefixes of the resources, including custom ones, that are held
// back because one of their objects cannot be read: "secrets", "example.com/widgets".
func (s *Set) HeldBack() []string { return s.options.Reflector.HeldBack() }

// WaitReady waits until all stores that are not held back can answer.
func (s *Set) WaitReady(ctx context.Context) error {
	for _, store := range s.runners() {
		if err := store.WaitReady(ctx); err != nil && !errors.Is(err, cache.ErrHeldBack) {
			return err
		}
	}
	return nil
}

// Bindings is where Bindings can be posted besides pods/binding, and what
// answers there.
func (s *Set) Bindings() (core.Resource, registry.Subresource) {
	return pod.Bindings, s.binder.Subresource()
}

// Served lists the resources with their subresources. kubelets is how logs and
// streams reach nodes; without an issuer, tokens can't be requested.
func (s *Set) Served(kubelets *kubeletclient.Client, issuer serviceaccount.Issuer) []registry.Served {
	streams := pod.NewStreams(s.Pods, s.Nodes, kubelets)
	proxies := proxy.New(proxy.Sources{
		Pods: s.Pods, Services: s.Services, EndpointSlices: s.EndpointSlices, Nodes: s.Nodes, Kubelets: kubelets,
	})
	subresources := map[registry.Resource][]registry.Subresource{
		s.Services: {proxies.Service()},
		s.Nodes:    {proxies.Node()},
		s.Pods: {
			proxies.Pod(),
			s.binder.Subresource(), pod.Eviction(s.Pods, s.DisruptionBudgets, s.options.Clock),
			streams.Log(), streams.Exec(), streams.Attach(), streams.PortForward(),
		},
	}
	if issuer != nil {
		subresources[s.ServiceAccounts] = []registry.Subresource{
			serviceaccount.Token(issuer, serviceaccount.TokenSources{
				ServiceAccounts: s.ServiceAccounts, Pods: s.Pods, Secrets: s.Secrets, Nodes: s.Nodes, Clock: s.options.Clock,
			}),
		}
	}
	out := slices.Clone(s.served)
	for i := range out {
		out[i].Subresources = append(slices.Clip(out[i].Subresources), subresources[out[i].Resource]...)
	}
	return out
}
