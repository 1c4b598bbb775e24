package pod

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Bindings is where Bindings were posted before pods/binding existed, and still
// may be. Nothing is stored under that name.
var Bindings = core.Resource{Version: "v1", Name: "bindings", Kind: "Binding", Namespaced: true}

var bindingResource = schema.GroupResource{Resource: "pods/binding"}

// Binder assigns pods to nodes, the last step of scheduling.
type Binder struct {
	pods  registry.Resource
	clock clock.PassiveClock
}

// NewBinder returns a Binder of the given pods.
func NewBinder(pods registry.Resource, clock clock.PassiveClock) *Binder {
	return &Binder{pods: pods, clock: clock}
}

// Subresource is pods/binding.
func (b *Binder) Subresource() registry.Subresource {
	return registry.Subresource{
		Name: "binding",
		Kind: corev1.SchemeGroupVersion.WithKind("Binding"),
		New:  func() runtime.Object { return new(core.Binding) },
		Create: func(ctx context.Context, namespace, name string, obj runtime.Object, o *metav1.CreateOptions) (runtime.Object, error) {
			return b.Bind(ctx, namespace, name, obj.(*core.Binding), o)
		},
	}
}

// Bind assigns the pod to the binding's target, in one transaction: a pod that
// has a node, is being deleted or is still gated stays as it is (409).
func (b *Binder) Bind(ctx context.Context, namespace, name string, binding *core.Binding, o *metav1.CreateOptions) (*metav1.Status, error) {
	switch {
	case binding.Name != name:
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	case binding.Namespace != "" && binding.Namespace != namespace:
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if errs := validateBinding(binding); len(errs) > 0 {
		return nil, registry.Invalid(corev1.SchemeGroupVersion.WithKind("Binding").GroupKind(), binding.Name, errs)
	}
	change := func(current core.Object) (core.Object, error) {
		pod := current.(*core.Pod)
		if err := b.assign(pod, binding); err != nil {
			return nil, err
		}
		return pod, nil
	}
	_, _, err := b.pods.Update(ctx, registry.Target{Namespace: namespace, Name: name, Subresource: "binding"}, change,
		registry.Admission{ReleasesObject: true}, &metav1.UpdateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager})
	if err != nil {
		return nil, err
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess, Code: http.StatusCreated,
	}, nil
}

func validateBinding(binding *core.Binding) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("target")
	if kind := binding.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if binding.Target.Name == "" {
		return append(errs, check.Required(target, "name", "")...)
	}
	return append(errs, check.Messages(target.Child("name"), binding.Target.Name, check.NameIsSubdomain(binding.Target.Name, false))...)
}

func (b *Binder) assign(pod *core.Pod, binding *core.Binding) error {
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(bindingResource, pod.Name, fmt.Errorf(format, args...))
	}
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return conflict("Precondition failed: UID in precondition: %v, UID in object meta: %v", binding.UID, pod.UID)
	case binding.ResourceVersion != "" && binding.ResourceVersion != pod.ResourceVersion:
		return conflict("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v",
			binding.ResourceVersion, pod.ResourceVersion)
	case pod.DeletionTimestamp != nil:
		return conflict("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return conflict("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return conflict("pod %s has non-empty .spec.schedulingGates", pod.Name)
	}
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.NominatedNodeName = ""
	pod.Annotations = withEntries(pod.Annotations, binding.Annotations)
	pod.Labels = withEntries(pod.Labels, binding.Labels)
	SetCondition(&pod.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
	}, metav1.NewTime(b.clock.Now()))
	return nil
}

// withEntries adds entries to a map that may be nil.
func withEntries(to, more map[string]string) map[string]string {
	if to == nil {
		return maps.Clone(more)
	}
	maps.Copy(to, more)
	return to
}

// SetCondition replaces the condition of its type; the transition time stays if
// the status does.
func SetCondition(status *core.PodStatus, condition corev1.PodCondition, now metav1.Time) {
	condition.LastTransitionTime = now
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		*old = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}
