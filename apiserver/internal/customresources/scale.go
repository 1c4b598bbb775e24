package customresources

import (
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/registry"
	cells "kctl/apiserver/internal/resources/cell"
	"kctl/proto/core"
)

// scalePaths are where an object has what Scale shows.
type scalePaths struct {
	spec, status, selector             []string
	specPath, statusPath, selectorPath string
}

func newScalePaths(s *apiextensionsv1.CustomResourceSubresourceScale) *scalePaths {
	p := &scalePaths{
		specPath: s.SpecReplicasPath, spec: stepsOf(s.SpecReplicasPath),
		statusPath: s.StatusReplicasPath, status: stepsOf(s.StatusReplicasPath),
	}
	if path := ptr.Deref(s.LabelSelectorPath, ""); path != "" {
		p.selectorPath, p.selector = path, stepsOf(path)
	}
	return p
}

func stepsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// maxReplicas is the largest number that fits into Scale.
const maxReplicas = 1<<31 - 1

// validateSpec makes sure that Scale can show what is wanted.
func (p *scalePaths) validateSpec(o *object) field.ErrorList {
	return validateReplicas(o, p.specPath, p.spec)
}

// validateStatus makes sure that Scale can show what there is.
func (p *scalePaths) validateStatus(o *object) field.ErrorList {
	errs := validateReplicas(o, p.statusPath, p.status)
	if p.selector != nil {
		if _, _, err := unstructured.NestedString(o.Object, p.selector...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(p.selectorPath), "", err.Error()))
		}
	}
	return errs
}

func validateReplicas(o *object, path string, steps []string) field.ErrorList {
	at := field.NewPath(path)
	replicas, _, err := unstructured.NestedInt64(o.Object, steps...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, 0, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(at, replicas, "should be a non-negative integer")}
	case replicas > maxReplicas:
		return field.ErrorList{field.Invalid(at, replicas, fmt.Sprintf("should be less than or equal to %v", maxReplicas))}
	}
	return nil
}

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// subresource is the Scale of the objects of a version.
func (p *scalePaths) subresource(of registry.Resource, replicas managedfields.Replicas, clock clock.PassiveClock) registry.Subresource {
	r := of.Info().Resource
	r.Group, r.Version, r.Kind = scaleKind.Group, scaleKind.Version, scaleKind.Kind
	return registry.Subresource{Name: "scale", Kind: scaleKind, Object: registry.NewScaleView(registry.View{
		Stored: of, Subresource: "scale",
		Shown:      registry.Info{Resource: r, Columns: cells.CustomScaleColumns()},
		Cells:      func(shown core.Object) []any { return cells.ScaleRow(shown.(*autoscalingv1.Scale), clock.Now()) },
		NewKind:    func() core.Object { return new(autoscalingv1.Scale) },
		Show:       func(stored core.Object) (core.Object, error) { return p.toScale(stored.(*object)) },
		CheckShown: func(stored core.Object) error { return p.checkHasReplicas(stored.(*object)) },
		WriteBack: func(shown, stored core.Object) error {
			return p.applyScale(shown.(*autoscalingv1.Scale), stored.(*object))
		},
	}, replicas, clock)}
}

// replicasIn is where each version of the objects has its replicas.
func replicasIn(versions map[string]*compiledVersion) managedfields.Replicas {
	out := managedfields.Replicas{}
	for _, f := range versions {
		var path fieldpath.Path
		if f.scale != nil {
			for _, step := range f.scale.spec {
				path = append(path, fieldpath.MakePathOrDie(step)...)
			}
		}
		out[schema.GroupVersion{Group: f.group, Version: f.name}.String()] = path
	}
	return out
}

// unspecified stands, in an update, for the replicas of an object without any.
const unspecified = math.MinInt32

func (p *scalePaths) checkHasReplicas(o *object) error {
	if _, ok := lookUp(o.Object, p.spec); !ok {
		return fmt.Errorf("the spec replicas field %q does not exist", p.specPath)
	}
	return nil
}

func (p *scalePaths) toScale(o *object) (core.Object, error) {
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(),
	}}
	scale.Spec.Replicas = unspecified
	if desired, ok := lookUp(o.Object, p.spec); ok {
		scale.Spec.Replicas = replicasOf(desired)
	}
	if current, ok := lookUp(o.Object, p.status); ok {
		scale.Status.Replicas = replicasOf(current)
	}
	if p.selector != nil {
		selector, _ := lookUp(o.Object, p.selector)
		scale.Status.Selector, _ = selector.(string)
	}
	return scale, nil
}

// replicasOf leaves negative numbers for validation to refuse: what admission is
// shown is written back.
func replicasOf(value any) int32 {
	n, _ := value.(int64)
	return int32(min(max(n, unspecified+1), maxReplicas))
}

func (p *scalePaths) applyScale(scale *autoscalingv1.Scale, o *object) error {
	if scale.Spec.Replicas == unspecified {
		return apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", p.specPath))
	}
	if err := unstructured.SetNestedField(o.Object, int64(scale.Spec.Replicas), p.spec...); err != nil {
		return err
	}
	if version := scale.ResourceVersion; version != "" {
		o.SetResourceVersion(version)
	}
	if scale.UID != "" {
		o.SetUID(scale.UID)
	}
	return nil
}
