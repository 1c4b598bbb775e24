package app

import (
	"maps"

	policyv1 "k8s.io/api/policy/v1"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/eventhandlers"
	"kctl/scheduler/internal/selectors"
)

// watches are what pods are placed by, by resource.
func (s *parts) watches(handlers *eventhandlers.Handlers) map[string]selectors.Reflector {
	all := map[string]selectors.Reflector{}
	if s.selectors.Wanted() {
		all = s.selectors.Watches(s.client, watch.Options{Clock: s.clock, Logger: s.logger})
	}
	all["namespaces"] = reflector(s, core.Namespaces, s.namespaces, "")
	all["nodes"] = reflector(s, core.Nodes, handlers.Nodes(), "")
	all["pods"] = reflector(s, core.Pods, handlers.Pods(), eventhandlers.PodSelector)
	return all
}

// reflector watches all objects of a resource that match a field selector.
func reflector[T any, P interface {
	*T
	core.Object
}](s *parts, resource core.Resource, sink watch.Sink[P], fields string) *watch.Reflector[P] {
	return watch.NewReflector(s.client.Resource(resource, ""), func() P { return new(T) }, sink,
		watch.Options{FieldSelector: fields, Clock: s.clock, Logger: s.logger})
}

// byNamespace is the index of the budgets.
const byNamespace = "namespace"

// newNamespaces returns a store of namespaces that calls told for those whose labels
// change.
func newNamespaces(told *cache.Cache) *watch.Store[*core.Namespace] {
	return watch.NewStore(nil, watch.Handler[*core.Namespace]{
		OnAdd:    func(*core.Namespace) { told.NamespaceChanged() },
		OnDelete: func(*core.Namespace) { told.NamespaceChanged() },
		OnUpdate: func(before, after *core.Namespace) {
			if !maps.Equal(before.Labels, after.Labels) {
				told.NamespaceChanged()
			}
		},
	})
}

// newBudgets returns a store of disruption budgets by namespace.
func newBudgets() *watch.Store[*policyv1.PodDisruptionBudget] {
	return watch.NewStore(map[string]watch.IndexFunc[*policyv1.PodDisruptionBudget]{
		byNamespace: func(b *policyv1.PodDisruptionBudget) []string { return []string{b.Namespace} },
	})
}
