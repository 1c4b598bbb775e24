package workload

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Replicas is what Scale shows of an object, and what it changes.
type Replicas struct {
	// Desired points into the object's spec.
	Desired  *int32
	Current  int32
	Selector string
}

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// Scale is the subresource that reads and changes the replicas of any kind
// (Kubernetes API, "Scale v1 autoscaling").
func Scale[T core.Object](of registry.Resource, clock clock.PassiveClock, replicas func(obj T) Replicas) registry.Subresource {
	resource := core.Resource{
		Group: scaleKind.Group, Version: scaleKind.Version, Kind: scaleKind.Kind, Name: of.Info().Name, Namespaced: true,
	}
	return registry.Subresource{Name: "scale", Kind: scaleKind, Object: registry.NewScaleView(registry.View{
		Stored: of, Subresource: "scale",
		Shown: registry.Info{
			Resource: resource, Columns: cell.ScaleColumns(),
		},
		NewKind: func() core.Object { return new(autoscalingv1.Scale) },
		Show: func(stored core.Object) (core.Object, error) {
			r := replicas(stored.(T))
			return &autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{
					Name: stored.GetName(), Namespace: stored.GetNamespace(), UID: stored.GetUID(),
					ResourceVersion: stored.GetResourceVersion(), CreationTimestamp: stored.GetCreationTimestamp(),
				},
				Spec:   autoscalingv1.ScaleSpec{Replicas: *r.Desired},
				Status: autoscalingv1.ScaleStatus{Replicas: r.Current, Selector: r.Selector},
			}, nil
		},
		Cells: func(shown core.Object) []any {
			return cell.ScaleRow(shown.(*autoscalingv1.Scale), clock.Now())
		},
		Validate: func(shown core.Object) field.ErrorList {
			return check.Nonnegative(int64(shown.(*autoscalingv1.Scale).Spec.Replicas), field.NewPath("spec", "replicas"))
		},
		WriteBack: func(shown, stored core.Object) error {
			scale := shown.(*autoscalingv1.Scale)
			*replicas(stored.(T)).Desired = scale.Spec.Replicas
			stored.SetResourceVersion(scale.ResourceVersion)
			if scale.UID != "" {
				stored.SetUID(scale.UID)
			}
			return nil
		},
	}, managedfields.Replicas{of.Info().GVK().GroupVersion().String(): fieldpath.MakePathOrDie("spec", "replicas")}, clock)}
}
