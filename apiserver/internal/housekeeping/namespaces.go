package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// emptyRetryInterval is when to look again at a namespace whose content needs time to
// go: pods that terminate gracefully, objects with finalizers.
const emptyRetryInterval = time.Second

// namespacesAtOnce is upstream's: a namespace may wait for other servers, for each of their
// resources.
const namespacesAtOnce = 10

// namespaces empties every deleted namespace, and then releases it.
type namespaces struct {
	states     *informer.Informer[namespaceState]
	store      registry.Resource
	content    []registry.Resource
	dynamic    DynamicResources
	aggregated AggregatedServers
	clock      clock.PassiveClock
}

func newNamespaces(d *Dependencies) (Loop, error) {
	n := &namespaces{dynamic: d.DynamicResources, aggregated: d.AggregatedServers, clock: d.Clock}
	var err error
	if n.states, n.store, err = newInformer(d, core.Namespaces, namespaceStateOf); err != nil {
		return nil, err
	}
	for _, r := range d.Resources {
		if r.Info().Namespaced {
			n.content = append(n.content, r)
		}
	}
	w := newWorker("namespace-controller", d, namespacesAtOnce, n.sync)
	n.states.OnChange(func(key informer.Key, _, now *namespaceState) {
		if now != nil && now.deleted {
			w.add(key)
		}
	})
	return runTogether(n.states.Run, afterSync(w.run, n.states.Synced())), nil
}

func (n *namespaces) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	namespace, ok := n.states.Get("", key.Name)
	if !ok || !namespace.deleted {
		return 0, nil
	}
	left := n.deleteContent(ctx, key.Name)
	if err := n.updateConditions(ctx, key.Name, left); err != nil {
		return 0, err
	}
	if err := errors.Join(append(left.failures, left.undiscovered())...); err != nil {
		return 0, err
	}
	if len(left.objects) > 0 {
		return emptyRetryInterval, nil
	}
	return 0, n.finalize(ctx, key.Name)
}

// namespacedResources are the namespaced resources. missing says why the namespace may have
// objects of others, nil if there are none.
func (n *namespaces) namespacedResources() (all []registry.Resource, missing error) {
	if n.dynamic == nil {
		return n.content, nil
	}
	all = slices.Clone(n.content)
	present, missing := n.dynamic.Resources()
	for _, r := range present {
		if r.Info().Namespaced {
			all = append(all, r)
		}
	}
	return all, missing
}

// deleteContent deletes everything in the namespace and returns what is still there.
// Admission refuses new objects. Pods go first, and nothing else while there is
// one: they end with the network policies that bind them and the secrets they
// read still in place (KEP-5080).
func (n *namespaces) deleteContent(ctx context.Context, namespace string) remainingContent {
	left := remainingContent{objects: map[string]int{}, finalizers: map[string]int{}}
	all, missing := n.namespacedResources()
	for _, r := range all {
		if r.Info().Resource == core.Pods {
			left.counterFor(r)(deleteResource(ctx, r, namespace))
		}
	}
	if len(left.objects)+len(left.failures) > 0 {
		return left
	}
	if n.aggregated != nil {
		var failures []error
		left.unknown, failures = n.aggregated.EmptyNamespace(ctx, namespace, left.addRemaining)
		left.failures = append(left.failures, failures...)
	}
	for _, r := range all {
		if r.Info().Resource != core.Pods {
			left.counterFor(r)(deleteResource(ctx, r, namespace))
		}
	}
	if missing != nil { // there may be objects here, which would outlive the namespace
		left.failures = append(left.failures, fmt.Errorf("read the definitions of custom resources: %w", missing))
	}
	return left
}

// deleteResource deletes all objects of a resource, and returns those that remain.
func deleteResource(ctx context.Context, r registry.Resource, namespace string) ([]core.Object, error) {
	background := metav1.DeletePropagationBackground
	options := &metav1.DeleteOptions{PropagationPolicy: &background}
	_, err := r.DeleteCollection(ctx, namespace, registry.Admission{}, options, registry.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("delete all %s: %w", r.Info().Name, err)
	}
	list, err := r.List(ctx, namespace, registry.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Info().Name, err)
	}
	var left []core.Object
	for _, item := range list.Items {
		obj, err := r.Decode(item)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", r.Info().Name, err)
		}
		left = append(left, obj)
	}
	return left, nil
}

func (n *namespaces) finalize(ctx context.Context, name string) error {
	err := modify(ctx, n.store, registry.Target{Name: name, Subresource: "finalize"}, func(current core.Object) (core.Object, error) {
		namespace := current.(*core.Namespace)
		namespace.Spec.Finalizers = slices.DeleteFunc(namespace.Spec.Finalizers,
			func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		return namespace, nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finalize: %w", err)
	}
	return nil
}

// BootstrapNamespaces makes the namespaces that every cluster has.
func BootstrapNamespaces(ctx context.Context, store registry.Resource) error {
	for _, name := range []string{core.NamespaceDefault, core.NamespaceSystem, core.NamespacePublic, core.NamespaceNodeLease} {
		namespace := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := store.Create(ctx, namespace, registry.Admission{}, &metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("bootstrap namespace %s: %w", name, err)
		}
	}
	return nil
}
