package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Served are the resources of the group storage.k8s.io except storage classes
// and CSI drivers.
func Served(o registry.Options) []registry.Served {
	return registry.Serve(
		registry.NewStore(attributesClasses(o.Clock), o),
		registry.NewStore(csiNodes(o.Clock), o),
		registry.NewStore(csiStorageCapacities(), o),
		registry.NewStore(volumeAttachments(o.Clock), o),
	)
}

func resource(name, kind string) core.Resource {
	return core.Resource{Group: storagev1.GroupName, Version: "v1", Name: name, Kind: kind}
}

// ClassResource are the storage classes.
var ClassResource = resource("storageclasses", "StorageClass")

// DriverResource are the CSI drivers.
var DriverResource = resource("csidrivers", "CSIDriver")

// AttributesClassResource are the volume attributes classes.
var AttributesClassResource = resource("volumeattributesclasses", "VolumeAttributesClass")

// The annotations that mark a class as the default.
const (
	defaultAnnotation     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
)

var specPath = field.NewPath("spec")

// Classes is the strategy of storage classes.
func Classes(clock clock.PassiveClock) registry.Strategy[*storagev1.StorageClass] {
	return registry.Strategy[*storagev1.StorageClass]{
		Resource: ClassResource, Singular: "storageclass", ShortNames: []string{"sc"},
		Default: func(c *storagev1.StorageClass) {
			if c.ReclaimPolicy == nil {
				c.ReclaimPolicy = new(corev1.PersistentVolumeReclaimDelete)
			}
			if c.VolumeBindingMode == nil {
				c.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
			}
		},
		Create: registry.CreateStrategy[*storagev1.StorageClass]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, c *storagev1.StorageClass) field.ErrorList { return validateClass(c) },
			Warnings: func(_ context.Context, c *storagev1.StorageClass) []string {
				return topologyWarnings(c.AllowedTopologies)
			},
		},
		Update: registry.UpdateStrategy[*storagev1.StorageClass]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, c, old *storagev1.StorageClass) field.ErrorList {
				return append(validateClass(c), sameClass(c, old)...)
			},
			Warnings: func(_ context.Context, c, _ *storagev1.StorageClass) []string {
				return topologyWarnings(c.AllowedTopologies)
			},
		},
		Delete: registry.DeleteStrategy[*storagev1.StorageClass]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*storagev1.StorageClass]{
			Columns: cell.Columns(storagev1.StorageClass{}.SwaggerDoc(),
				"Name", "Provisioner=provisioner", "ReclaimPolicy=reclaimPolicy", "VolumeBindingMode=volumeBindingMode",
				"AllowVolumeExpansion=allowVolumeExpansion", "Age",
			),
			Row: func(c *storagev1.StorageClass) []any { return classRow(c, clock.Now()) },
		},
	}
}

// sameClass are the errors of a class's change: it applies to volumes that are there already.
func sameClass(c, old *storagev1.StorageClass) (errs field.ErrorList) {
	for _, fixed := range []struct {
		name     string
		now, was any
	}{
		{"parameters", c.Parameters, old.Parameters},
		{"provisioner", c.Provisioner, old.Provisioner},
		{"reclaimPolicy", c.ReclaimPolicy, old.ReclaimPolicy},
		{"volumeBindingMode", c.VolumeBindingMode, old.VolumeBindingMode},
	} {
		errs = append(errs, check.DeclaredImmutable(fixed.now, fixed.was, field.NewPath(fixed.name))...)
	}
	return errs
}

func classRow(c *storagev1.StorageClass, now time.Time) []any {
	name := c.Name
	if IsDefaultClass(c) {
		name += " (default)"
	}
	return []any{
		name, c.Provisioner, string(ptr.Deref(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)),
		string(ptr.Deref(c.VolumeBindingMode, storagev1.VolumeBindingImmediate)), ptr.Deref(c.AllowVolumeExpansion, false),
		cell.Age(now, c.CreationTimestamp),
	}
}

// IsDefaultClass reports whether claims without a class get this one.
func IsDefaultClass(c *storagev1.StorageClass) bool {
	return c.Annotations[defaultAnnotation] == "true" || c.Annotations[betaDefaultAnnotation] == "true"
}

func validateClass(c *storagev1.StorageClass) field.ErrorList {
	errs := validateProvisioner(c.Provisioner, field.NewPath("provisioner"))
	errs = append(errs, validateParameters(c.Parameters, true, field.NewPath("parameters"))...)
	if policy := ptr.Deref(c.ReclaimPolicy, ""); policy != "" {
		errs = append(errs, check.Supported(policy, field.NewPath("reclaimPolicy"),
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
	}
	errs = append(errs, check.Supported(ptr.Deref(c.VolumeBindingMode, ""), field.NewPath("volumeBindingMode"),
		storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	return append(errs, validateTopologies(c.AllowedTopologies)...)
}

// validateProvisioner validates the name of a provisioner or driver.
func validateProvisioner(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return check.QualifiedName(strings.ToLower(name), at)
}

// validateTopologies validates a class's topologies: terms are not empty, and
// distinct.
func validateTopologies(terms []corev1.TopologySelectorTerm) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, term := range terms {
		at := field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions")
		means, found := validateTopology(term, at)
		errs = append(errs, found...)
		text := meaning(means)
		if len(means) == 0 || seen[text] {
			errs = append(errs, field.Duplicate(at, ""))
		}
		seen[text] = true
	}
	return errs
}

// meaning is a text that is the same for terms with the same label values, and for no others.
func meaning(means map[string]sets.Set[string]) string {
	sorted := make(map[string][]string, len(means))
	for key, values := range means {
		sorted[key] = sets.List(values)
	}
	return fmt.Sprintf("%q", sorted)
}

// validateTopology returns a term's label values.
func validateTopology(term corev1.TopologySelectorTerm, at *field.Path) (map[string]sets.Set[string], field.ErrorList) {
	var errs field.ErrorList
	means := map[string]sets.Set[string]{}
	for i, e := range term.MatchLabelExpressions {
		at := at.Index(i)
		values := sets.New[string]()
		if len(e.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"), ""))
		}
		for j, value := range e.Values {
			if values.Has(value) {
				errs = append(errs, field.Duplicate(at.Child("values").Index(j), value))
			}
			values.Insert(value)
		}
		errs = append(errs, check.QualifiedName(e.Key, at.Child("key"))...)
		if _, twice := means[e.Key]; twice {
			errs = append(errs, field.Duplicate(at.Child("key"), e.Key))
		}
		means[e.Key] = values
	}
	return means, errs
}

const (
	maxParameters     = 512
	maxParameterBytes = 256 << 10
)

func validateParameters(parameters map[string]string, mayBeEmpty bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !mayBeEmpty && len(parameters) == 0 {
		return field.ErrorList{field.Required(at, "must contain at least one key/value pair")}
	}
	if len(parameters) > maxParameters {
		return field.ErrorList{field.TooLong(at, "", maxParameters)}
	}
	size := 0
	for key, value := range parameters {
		if key == "" {
			errs = append(errs, field.Invalid(at, key, "field can not be empty."))
		}
		size += len(key) + len(value)
	}
	if size > maxParameterBytes {
		errs = append(errs, field.TooLong(at, "", maxParameterBytes))
	}
	return errs
}

func attributesClasses(clock clock.PassiveClock) registry.Strategy[*storagev1.VolumeAttributesClass] {
	return registry.Strategy[*storagev1.VolumeAttributesClass]{
		Resource: AttributesClassResource, Singular: "volumeattributesclass", ShortNames: []string{"vac"},
		Create: registry.CreateStrategy[*storagev1.VolumeAttributesClass]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, c *storagev1.VolumeAttributesClass) field.ErrorList {
				return validateAttributes(c)
			},
		},
		Update: registry.UpdateStrategy[*storagev1.VolumeAttributesClass]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, c, old *storagev1.VolumeAttributesClass) field.ErrorList {
				var errs field.ErrorList
				if c.DriverName != old.DriverName {
					errs = append(errs, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
				}
				if !equality.Semantic.DeepEqual(c.Parameters, old.Parameters) {
					errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
				}
				return append(errs, validateAttributes(c)...)
			},
		},
		Delete: registry.DeleteStrategy[*storagev1.VolumeAttributesClass]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*storagev1.VolumeAttributesClass]{
			Columns: cell.Columns(storagev1.VolumeAttributesClass{}.SwaggerDoc(), "Name", "DriverName=driverName", "Age"),
			Row: func(c *storagev1.VolumeAttributesClass) []any {
				name := c.Name
				if c.Annotations[defaultAnnotation] == "true" {
					name += " (default)"
				}
				return []any{name, c.DriverName, cell.Age(clock.Now(), c.CreationTimestamp)}
			},
		},
	}
}

func validateAttributes(c *storagev1.VolumeAttributesClass) field.ErrorList {
	errs := validateProvisioner(c.DriverName, field.NewPath("driverName"))
	return append(errs, validateParameters(c.Parameters, false, field.NewPath("parameters"))...)
}

func csiStorageCapacities() registry.Strategy[*storagev1.CSIStorageCapacity] {
	r := resource("csistoragecapacities", "CSIStorageCapacity")
	r.Namespaced = true
	validate := func(c *storagev1.CSIStorageCapacity) field.ErrorList {
		var errs field.ErrorList
		if c.NodeTopology != nil {
			errs = append(errs, check.LabelSelector(c.NodeTopology, field.NewPath("nodeTopology"))...)
		}
		if c.Capacity != nil && c.Capacity.Sign() < 0 {
			errs = append(errs, field.Invalid(field.NewPath("capacity"), c.Capacity.String(), check.NotNegative))
		}
		class := field.NewPath("storageClassName") // last, as with upstream
		return append(errs, check.Messages(class, c.StorageClassName, check.NameIsSubdomain(c.StorageClassName, false))...)
	}
	return registry.Strategy[*storagev1.CSIStorageCapacity]{
		Resource: r, Singular: "csistoragecapacity",
		Create: registry.CreateStrategy[*storagev1.CSIStorageCapacity]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, c *storagev1.CSIStorageCapacity) field.ErrorList { return validate(c) },
			Warnings:     func(_ context.Context, c *storagev1.CSIStorageCapacity) []string { return capacityWarnings(c) },
		},
		Update: registry.UpdateStrategy[*storagev1.CSIStorageCapacity]{
			Validate: func(_ context.Context, c, old *storagev1.CSIStorageCapacity) field.ErrorList {
				errs := append(validate(c), check.Unchanged(c.NodeTopology, old.NodeTopology, field.NewPath("nodeTopology"))...)
				return append(errs, check.Unchanged(c.StorageClassName, old.StorageClassName, field.NewPath("storageClassName"))...)
			},
			Warnings: func(_ context.Context, c, _ *storagev1.CSIStorageCapacity) []string {
				return capacityWarnings(c)
			},
		},
		Read: registry.ReadStrategy[*storagev1.CSIStorageCapacity]{
			Columns: cell.NameAndTime(),
			Row:     func(c *storagev1.CSIStorageCapacity) []any { return cell.NameAndTimeRow(&c.ObjectMeta) },
		},
	}
}
