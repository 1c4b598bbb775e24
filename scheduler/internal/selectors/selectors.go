// Package selectors knows which pods belong together without saying so
// themselves: those that one Service selects, or that one ReplicationController,
// ReplicaSet or StatefulSet has made (Kubernetes docs, "Pod Topology Spread
// Constraints", cluster-level default constraints).
//
// The profile passes it to the plugin that spreads such pods; the app runs its
// watches if some profile uses it. It decides nothing.
package selectors

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// object is the part of an object that says which pods it selects.
type object[S any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector S `json:"selector"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object; nobody changes the copies.
func (o *object[S]) DeepCopyObject() runtime.Object {
	c := *o
	return &c
}

type (
	byLabels   = object[map[string]string]
	bySelector = object[*metav1.LabelSelector]
)

var (
	replicationControllers = core.Resource{Version: "v1", Name: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true}
	replicaSets            = core.Resource{Group: "apps", Version: "v1", Name: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	statefulSets           = core.Resource{Group: "apps", Version: "v1", Name: "statefulsets", Kind: "StatefulSet", Namespaced: true}
)

// Selectors is safe for concurrent use.
type Selectors struct {
	wanted      atomic.Bool
	services    *watch.Store[*byLabels]
	controllers *watch.Store[*byLabels]
	sets        map[string]*watch.Store[*bySelector] // by kind
}

const byNamespace = "namespace"

// New returns an empty Selectors.
func New() *Selectors {
	return &Selectors{
		services: watch.NewStore(map[string]watch.IndexFunc[*byLabels]{
			byNamespace: func(o *byLabels) []string { return []string{o.Namespace} },
		}),
		controllers: watch.NewStore[*byLabels](nil),
		sets: map[string]*watch.Store[*bySelector]{
			replicaSets.Kind: watch.NewStore[*bySelector](nil), statefulSets.Kind: watch.NewStore[*bySelector](nil),
		},
	}
}

// Want says that Of will be called.
func (s *Selectors) Want() { s.wanted.Store(true) }

// Wanted reports whether Want was called.
func (s *Selectors) Wanted() bool { return s.wanted.Load() }

// Of returns a selector of the pods that belong together with pod; nil if there are none.
func (s *Selectors) Of(pod *core.Pod) labels.Selector {
	set := labels.Set{}
	for _, service := range s.services.ByIndex(byNamespace, pod.Namespace) {
		if service.Spec.Selector != nil && labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			set = labels.Merge(set, service.Spec.Selector)
		}
	}
	owner := metav1.GetControllerOf(pod)
	var own labels.Requirements
	switch {
	case owner == nil:
	case owner.Kind == replicationControllers.Kind && owner.APIVersion == "v1":
		if controller, known := s.controllers.Get(pod.Namespace, owner.Name); known {
			set = labels.Merge(set, controller.Spec.Selector)
		}
	case owner.APIVersion == "apps/v1" && s.sets[owner.Kind] != nil:
		if made, known := s.sets[owner.Kind].Get(pod.Namespace, owner.Name); known {
			if selector, err := metav1.LabelSelectorAsSelector(made.Spec.Selector); err == nil {
				own, _ = selector.Requirements()
			}
		}
	}
	if len(set) == 0 && len(own) == 0 {
		return nil
	}
	return labels.SelectorFromSet(set).Add(own...)
}

// Reflector is a watch that keeps a part of the Selectors current.
type Reflector interface {
	Run(ctx context.Context) error
	Synced() <-chan struct{}
}

// Watches returns the watches of everything that selects pods, by resource.
func (s *Selectors) Watches(client *rest.Client, options watch.Options) map[string]Reflector {
	return map[string]Reflector{
		"services":               reflector(client, core.Services, s.services, options),
		"replicationcontrollers": reflector(client, replicationControllers, s.controllers, options),
		"replicasets":            reflector(client, replicaSets, s.sets[replicaSets.Kind], options),
		"statefulsets":           reflector(client, statefulSets, s.sets[statefulSets.Kind], options),
	}
}

func reflector[S any](client *rest.Client, resource core.Resource, store *watch.Store[*object[S]], options watch.Options) Reflector {
	return watch.NewReflector(client.Resource(resource, ""), func() *object[S] { return &object[S]{} }, slim[S]{store}, options)
}

// slim passes objects on to a store without their unused parts. It is a
// watch.Keeper.
type slim[S any] struct{ *watch.Store[*object[S]] }

var _ watch.Keeper[*byLabels] = slim[map[string]string]{}

func (s slim[S]) Replace(objects []*object[S]) {
	for _, o := range objects {
		if kept, _ := s.Get(o.Namespace, o.Name); kept != o { // which is being read
			s.slim(o)
		}
	}
	s.Store.Replace(objects)
}

func (s slim[S]) Apply(t watch.Type, o *object[S]) {
	s.slim(o)
	s.Store.Apply(t, o)
}

func (slim[S]) slim(o *object[S]) {
	o.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
}
