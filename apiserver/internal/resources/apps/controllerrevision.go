package apps

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
)

func controllerRevision(clock clock.PassiveClock) registry.Strategy[*appsv1.ControllerRevision] {
	validate := func(r *appsv1.ControllerRevision) field.ErrorList {
		var errs field.ErrorList
		if len(r.Data.Raw) == 0 && r.Data.Object == nil {
			errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
		} else if objectIn(r.Data) == nil {
			errs = append(errs, field.Required(field.NewPath("data"), "data must be a valid JSON object"))
		}
		return append(errs, check.Nonnegative(r.Revision, field.NewPath("revision"))...)
	}
	return registry.Strategy[*appsv1.ControllerRevision]{
		Resource: resource("controllerrevisions", "ControllerRevision"), Singular: "controllerrevision",
		Create: registry.CreateStrategy[*appsv1.ControllerRevision]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, r *appsv1.ControllerRevision) field.ErrorList { return validate(r) },
		},
		Update: registry.UpdateStrategy[*appsv1.ControllerRevision]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, r, old *appsv1.ControllerRevision) field.ErrorList {
				return append(validate(r), check.Unchanged(objectIn(r.Data), objectIn(old.Data), field.NewPath("data"))...)
			},
		},
		Read: registry.ReadStrategy[*appsv1.ControllerRevision]{
			Columns: cell.Describe(cell.Columns(appsv1.ControllerRevision{}.SwaggerDoc(),
				"Name", "Controller", "Revision=revision", "Age",
			), map[string]string{
				"Controller": "Controller of the object",
			}),
			Row: func(r *appsv1.ControllerRevision) []any {
				return []any{r.Name, controllerOf(r), r.Revision, cell.Age(clock.Now(), r.CreationTimestamp)}
			},
		},
	}
}

// objectIn is the object in data, or nil if there is none.
func objectIn(data runtime.RawExtension) map[string]any {
	var out map[string]any
	if err := json.Unmarshal(data.Raw, &out); err != nil {
		return nil
	}
	return out
}

func controllerOf(r *appsv1.ControllerRevision) string {
	owner := metav1.GetControllerOf(r)
	if owner == nil {
		return cell.None
	}
	return cell.Reference(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind(), owner.Name)
}
