// Package configmap holds what is particular to config maps.
package configmap

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of config maps.
func Strategy(clock clock.PassiveClock) registry.Strategy[*core.ConfigMap] {
	return registry.Strategy[*core.ConfigMap]{
		Resource: core.ConfigMaps, Singular: "configmap", ShortNames: []string{"cm"},
		StoragePrefix: "configmaps",
		New:           func() *core.ConfigMap { return new(core.ConfigMap) },
		Default:       func(cm *core.ConfigMap) { check.EmptyForNull(cm.BinaryData) },
		Create: registry.CreateStrategy[*core.ConfigMap]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, cm *core.ConfigMap) field.ErrorList { return validate(cm) },
		},
		Update: registry.UpdateStrategy[*core.ConfigMap]{AllowUnconditional: true, Validate: validateUpdate},
		Read: registry.ReadStrategy[*core.ConfigMap]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("Data", core.ConfigMap{}.SwaggerDoc()["data"]), cell.AgeColumn(),
			},
			Row: func(cm *core.ConfigMap) []any {
				return []any{cm.Name, int64(len(cm.Data) + len(cm.BinaryData)), cell.Age(clock.Now(), cm.CreationTimestamp)}
			},
		},
	}
}

func validate(cm *core.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, value := range cm.Data {
		path := field.NewPath("data").Key(key)
		errs = append(errs, check.Messages(path, key, validation.IsConfigMapKey(key))...)
		if _, twice := cm.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
		size += len(value)
	}
	for key, value := range cm.BinaryData {
		errs = append(errs, check.Messages(field.NewPath("binaryData").Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(value)
	}
	if size > check.MaxDataBytes {
		errs = append(errs, field.TooLong(field.NewPath(""), cm, check.MaxDataBytes))
	}
	return errs
}

func validateUpdate(_ context.Context, cm, old *core.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if old.Immutable != nil && *old.Immutable {
		const immutable = "field is immutable when `immutable` is set"
		if !ptr.Deref(cm.Immutable, false) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutable))
		}
		if !equality.Semantic.DeepEqual(cm.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutable))
		}
		if !equality.Semantic.DeepEqual(cm.BinaryData, old.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutable))
		}
	}
	return append(errs, validate(cm)...)
}
