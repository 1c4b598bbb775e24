package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// remainingContent is what is left in a namespace being deleted.
type remainingContent struct {
	objects    map[string]int // by resource and group
	finalizers map[string]int // objects by the finalizers that hold them
	failures   []error
	unknown    map[schema.GroupVersion]error // what other servers can't say
}

// undiscovered names the servers whose objects in the namespace are unknown, in
// upstream's words; nil if there are none.
func (l *remainingContent) undiscovered() error {
	if len(l.unknown) == 0 {
		return nil
	}
	var parts []string
	for gv, err := range l.unknown {
		parts = append(parts, fmt.Sprintf("%s: %v", gv, err))
	}
	slices.Sort(parts)
	return errors.New("unable to retrieve the complete list of server APIs: " + strings.Join(parts, ", "))
}

// addRemaining counts an object.
func (l *remainingContent) addRemaining(of schema.GroupResource, finalizers []string) {
	l.objects[of.Resource+"."+of.Group]++
	for _, finalizer := range finalizers {
		l.finalizers[finalizer]++
	}
}

// counterFor returns a function that counts the objects of a resource.
func (l *remainingContent) counterFor(r registry.Resource) func([]core.Object, error) {
	return func(objects []core.Object, err error) {
		if err != nil {
			l.failures = append(l.failures, err)
		}
		info := r.Info()
		for _, obj := range objects {
			l.addRemaining(info.GVR().GroupResource(), obj.GetFinalizers())
		}
	}
}

// conditions tell users what a namespace's deletion waits for, in the words of
// upstream's controller (Kubernetes API, "NamespaceCondition").
func (l *remainingContent) conditions() []corev1.NamespaceCondition {
	is := func(kind corev1.NamespaceConditionType, status corev1.ConditionStatus, reason, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	out := []corev1.NamespaceCondition{
		is(corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionFalse, "ResourcesDiscovered", "All resources successfully discovered"),
		is(corev1.NamespaceDeletionGVParsingFailure, corev1.ConditionFalse, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
		is(corev1.NamespaceDeletionContentFailure, corev1.ConditionFalse, "ContentDeleted",
			"All content successfully deleted, may be waiting on finalization"),
		is(corev1.NamespaceContentRemaining, corev1.ConditionFalse, "ContentRemoved", "All content successfully removed"),
		is(corev1.NamespaceFinalizersRemaining, corev1.ConditionFalse, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
	if err := l.undiscovered(); err != nil {
		out[0] = is(corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionTrue, "DiscoveryFailed",
			fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(l.unknown), err))
	}
	if len(l.failures) > 0 {
		out[2] = is(corev1.NamespaceDeletionContentFailure, corev1.ConditionTrue, "ContentDeletionFailed",
			"Failed to delete all resource types: "+errors.Join(l.failures...).Error())
	}
	if len(l.objects) > 0 {
		out[3] = is(corev1.NamespaceContentRemaining, corev1.ConditionTrue, "SomeResourcesRemain",
			"Some resources are remaining: "+formatCounts(l.objects, "%s has %d resource instances"))
	}
	if len(l.finalizers) > 0 {
		out[4] = is(corev1.NamespaceFinalizersRemaining, corev1.ConditionTrue, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+formatCounts(l.finalizers, "%s in %d resource instances"))
	}
	return out
}

func formatCounts(numbers map[string]int, format string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, fmt.Sprintf(format, name, numbers[name]))
	}
	return strings.Join(parts, ", ")
}

// updateConditions writes the conditions, if they differ from the namespace's.
func (n *namespaces) updateConditions(ctx context.Context, name string, left remainingContent) error {
	if len(left.objects)+len(left.failures)+len(left.unknown) == 0 {
		return nil // it will be gone in a moment
	}
	namespace, err := registry.GetStored[*core.Namespace](ctx, n.store, "", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace: %w", err)
	}
	want := left.conditions()
	if !setConditions(namespace, want, n.clock.Now()) {
		return nil
	}
	err = modify(ctx, n.store, registry.Target{Name: name, Subresource: "status"}, func(current core.Object) (core.Object, error) {
		setConditions(current.(*core.Namespace), want, n.clock.Now())
		return current, nil
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write conditions: %w", err)
	}
	return nil
}

// setConditions reports whether it changed anything.
func setConditions(namespace *core.Namespace, want []corev1.NamespaceCondition, now time.Time) bool {
	changed := false
	for _, c := range want {
		c.LastTransitionTime = metav1.NewTime(now)
		i := slices.IndexFunc(namespace.Status.Conditions, func(have corev1.NamespaceCondition) bool { return have.Type == c.Type })
		if i < 0 {
			namespace.Status.Conditions = append(namespace.Status.Conditions, c)
			changed = true
			continue
		}
		have := &namespace.Status.Conditions[i]
		if have.Status == c.Status {
			c.LastTransitionTime = have.LastTransitionTime
		}
		changed = changed || *have != c
		*have = c
	}
	return changed
}
