package storage

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/volume"
	"kctl/apiserver/internal/resources/workload"
)

// Drivers is the strategy of CSI drivers.
func Drivers(clock clock.PassiveClock) registry.Strategy[*storagev1.CSIDriver] {
	return registry.Strategy[*storagev1.CSIDriver]{
		Resource: DriverResource, Singular: "csidriver",
		Default: func(d *storagev1.CSIDriver) { defaultDriver(&d.Spec) },
		Create: registry.CreateStrategy[*storagev1.CSIDriver]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, d *storagev1.CSIDriver) field.ErrorList {
				return validateDriver(&d.Spec)
			},
			Warnings: driverWarnings,
		},
		Update: registry.UpdateStrategy[*storagev1.CSIDriver]{
			Prepare: func(_ context.Context, d, old *storagev1.CSIDriver) {
				if !equality.Semantic.DeepEqual(d.Spec, old.Spec) { // new ones have none, as in upstream
					d.Generation = old.Generation + 1
				}
			},
			Validate: func(_ context.Context, d, old *storagev1.CSIDriver) field.ErrorList {
				now, was := &d.Spec, &old.Spec
				errs := validateDriver(now)
				errs = append(errs, check.Unchanged(now.AttachRequired, was.AttachRequired, specPath.Child("attachedRequired"))...)
				modesPath := specPath.Child("volumeLifecycleModes")
				return append(errs, check.Unchanged(now.VolumeLifecycleModes, was.VolumeLifecycleModes, modesPath)...)
			},
			Warnings: func(ctx context.Context, d, old *storagev1.CSIDriver) []string {
				if equality.Semantic.DeepEqual(d.Spec.TokenRequests, old.Spec.TokenRequests) {
					return nil
				}
				return driverWarnings(ctx, d)
			},
		},
		Delete: registry.DeleteStrategy[*storagev1.CSIDriver]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*storagev1.CSIDriver]{
			Columns: cell.Columns(storagev1.CSIDriverSpec{}.SwaggerDoc(),
				"Name", "AttachRequired:boolean=attachRequired", "PodInfoOnMount:boolean=podInfoOnMount",
				"StorageCapacity:boolean=storageCapacity", "TokenRequests=tokenRequests", "RequiresRepublish:boolean=requiresRepublish",
				"Modes=volumeLifecycleModes", "Age",
			),
			Row: func(d *storagev1.CSIDriver) []any { return driverRow(d, clock.Now()) },
		},
	}
}

func defaultDriver(s *storagev1.CSIDriverSpec) {
	workload.DefaultTo(&s.AttachRequired, true)
	for _, off := range []**bool{
		&s.PodInfoOnMount, &s.StorageCapacity, &s.RequiresRepublish, &s.SELinuxMount, &s.PreventPodSchedulingIfMissing,
	} {
		workload.DefaultTo(off, false)
	}
	workload.DefaultTo(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

func driverRow(d *storagev1.CSIDriver, now time.Time) []any {
	s := &d.Spec
	audiences := "<unset>"
	if s.TokenRequests != nil {
		var list []string
		for _, t := range s.TokenRequests {
			list = append(list, t.Audience)
		}
		audiences = strings.Join(list, ",")
	}
	var modes []string
	for _, m := range s.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	return []any{
		d.Name, ptr.Deref(s.AttachRequired, true), ptr.Deref(s.PodInfoOnMount, false), ptr.Deref(s.StorageCapacity, false), audiences,
		ptr.Deref(s.RequiresRepublish, false), cell.OrNone(strings.Join(modes, ",")), cell.Age(now, d.CreationTimestamp),
	}
}

func validateDriver(s *storagev1.CSIDriverSpec) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, check.Supported(ptr.Deref(s.FSGroupPolicy, ""), specPath.Child("fsGroupPolicy"),
		storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)...)
	seen := sets.New[string]()
	for i, t := range s.TokenRequests {
		at := specPath.Child("tokenRequests").Index(i)
		if seen.Has(t.Audience) {
			errs = append(errs, field.Duplicate(at.Child("audience"), t.Audience))
			continue
		}
		seen.Insert(t.Audience)
		switch seconds := ptr.Deref(t.ExpirationSeconds, minTokenSeconds); {
		case seconds < minTokenSeconds:
			errs = append(errs, field.Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"))
		case seconds > maxTokenSeconds:
			errs = append(errs, field.Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	for _, mode := range s.VolumeLifecycleModes {
		if !slices.Contains(lifecycleModes, mode) {
			errs = append(errs, field.NotSupported(specPath.Child("volumeLifecycleModes"), mode, lifecycleModes))
		}
	}
	if seconds := s.NodeAllocatableUpdatePeriodSeconds; seconds != nil && *seconds < minUpdateSeconds {
		errs = append(errs, field.Invalid(specPath.Child("nodeAllocatableUpdatePeriodSeconds"), *seconds,
			"must be greater than or equal to 10 seconds"))
	}
	if secret := s.ServiceAccountTokenInSecrets; secret != nil && len(s.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(specPath.Child("serviceAccountTokenInSecrets"), *secret,
			"serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
	}
	return errs
}

const (
	minTokenSeconds  = 600
	maxTokenSeconds  = 1 << 32
	minUpdateSeconds = 10
)

var lifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral}

func driverWarnings(_ context.Context, d *storagev1.CSIDriver) []string {
	if len(d.Spec.TokenRequests) == 0 || d.Spec.ServiceAccountTokenInSecrets != nil {
		return nil
	}
	return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging " +
		"of tokens in volume attributes"}
}

func csiNodes(clock clock.PassiveClock) registry.Strategy[*storagev1.CSINode] {
	return registry.WithStatus(registry.Strategy[*storagev1.CSINode]{
		Resource: resource("csinodes", "CSINode"), Singular: "csinode",
		Normalize: func(n *storagev1.CSINode) {
			n.Spec.Drivers = check.NilIfEmpty(n.Spec.Drivers)
			for i := range n.Spec.Drivers {
				n.Spec.Drivers[i].TopologyKeys = check.NilIfEmpty(n.Spec.Drivers[i].TopologyKeys)
			}
		},
		Create: registry.CreateStrategy[*storagev1.CSINode]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, n *storagev1.CSINode) field.ErrorList { return validateNode(&n.Spec) },
		},
		Update: registry.UpdateStrategy[*storagev1.CSINode]{Validate: func(_ context.Context, n, old *storagev1.CSINode) field.ErrorList {
			return append(validateNode(&n.Spec), sameDrivers(n.Spec.Drivers, old.Spec.Drivers)...)
		}},
		Status: &registry.UpdateStrategy[*storagev1.CSINode]{KeepsMetadata: true, Prepare: func(_ context.Context, n, old *storagev1.CSINode) {
			if len(old.Status.StorageHealth) == 0 { // of an alpha feature that is off
				n.Status.StorageHealth = nil
			}
		}},
		Delete: registry.DeleteStrategy[*storagev1.CSINode]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*storagev1.CSINode]{
			Columns: cell.Describe(cell.Columns(storagev1.CSINodeSpec{}.SwaggerDoc(), "Name", "Drivers:integer=drivers", "Age"), map[string]string{
				"Drivers": "Drivers indicates the number of CSI drivers registered on the node",
			}),
			Row: func(n *storagev1.CSINode) []any {
				return []any{n.Name, int64(len(n.Spec.Drivers)), cell.Age(clock.Now(), n.CreationTimestamp)}
			},
		},
	})
}

// sameDrivers checks that a node's driver entries don't change, except for the
// number of volumes.
func sameDrivers(now, old []storagev1.CSINodeDriver) field.ErrorList {
	var errs field.ErrorList
	for _, was := range old {
		for _, is := range now {
			if is.Name != was.Name {
				continue
			}
			is.Allocatable, was.Allocatable = nil, nil
			if !equality.Semantic.DeepEqual(is, was) {
				errs = append(errs, field.Invalid(specPath.Child("drivers"), check.GoFieldNames{Value: is}, check.Immutable))
			}
		}
	}
	return errs
}

const maxNodeID = 256

func validateNode(s *storagev1.CSINodeSpec) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, d := range s.Drivers {
		at := specPath.Child("drivers").Index(i)
		errs = append(errs, check.DriverName(d.Name, at.Child("name"))...)
		switch {
		case d.NodeID == "":
			errs = append(errs, field.Required(at.Child("nodeID"), ""))
		case len(d.NodeID) > maxNodeID:
			errs = append(errs, field.Invalid(at.Child("nodeID"), d.NodeID, "must be 256 characters or less"))
		}
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			errs = append(errs, check.Nonnegative(int64(*d.Allocatable.Count), at.Child("allocatable", "count"))...)
		}
		if seen.Has(d.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
		}
		seen.Insert(d.Name)
		keys := sets.New[string]()
		for _, key := range d.TopologyKeys {
			if key == "" {
				errs = append(errs, field.Required(at, ""))
			}
			if keys.Has(key) {
				errs = append(errs, field.Duplicate(at, key))
			}
			keys.Insert(key)
			errs = append(errs, check.QualifiedName(key, at)...)
		}
	}
	return errs
}

func volumeAttachments(clock clock.PassiveClock) registry.Strategy[*storagev1.VolumeAttachment] {
	columns := cell.Columns(storagev1.VolumeAttachmentSpec{}.SwaggerDoc(),
		"Name", "Attacher=attacher", "PV", "Node=nodeName", "Attached:boolean", "Age",
	)
	columns = cell.Describe(columns, map[string]string{
		"PV":       storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"],
		"Attached": storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"],
	})
	columns[1].Format = "name"
	return registry.WithStatus(registry.Strategy[*storagev1.VolumeAttachment]{
		Resource: resource("volumeattachments", "VolumeAttachment"), Singular: "volumeattachment",
		Create: registry.CreateStrategy[*storagev1.VolumeAttachment]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, a *storagev1.VolumeAttachment) field.ErrorList {
				return append(validateAttachment(&a.Spec), check.NamedDriver(a.Spec.Attacher, specPath.Child("attacher"))...)
			},
		},
		Update: registry.UpdateStrategy[*storagev1.VolumeAttachment]{
			Validate: func(_ context.Context, a, old *storagev1.VolumeAttachment) field.ErrorList {
				errs := append(check.DriverName(a.Spec.Attacher, specPath.Child("attacher")), validateAttachment(&a.Spec)...)
				return append(errs, check.DeclaredImmutable(a.Spec, old.Spec, specPath)...)
			},
		},
		Status: &registry.UpdateStrategy[*storagev1.VolumeAttachment]{
			KeepsMetadata: true,
			Validate: func(_ context.Context, a, _ *storagev1.VolumeAttachment) field.ErrorList {
				return validateAttachmentStatus(&a.Status)
			},
		},
		Delete: registry.DeleteStrategy[*storagev1.VolumeAttachment]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*storagev1.VolumeAttachment]{
			Columns: columns,
			Row: func(a *storagev1.VolumeAttachment) []any {
				return []any{
					a.Name, a.Spec.Attacher, ptr.Deref(a.Spec.Source.PersistentVolumeName, ""), a.Spec.NodeName, a.Status.Attached,
					cell.Age(clock.Now(), a.CreationTimestamp),
				}
			},
		},
	})
}

func validateAttachment(s *storagev1.VolumeAttachmentSpec) field.ErrorList {
	var errs field.ErrorList
	source := specPath.Child("source")
	switch name := s.Source.PersistentVolumeName; {
	case name != nil && s.Source.InlineVolumeSpec != nil:
		errs = append(errs, field.Forbidden(source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
	case name == nil && s.Source.InlineVolumeSpec == nil:
		errs = append(errs, field.Required(source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
	case name == nil:
		errs = append(errs, volume.ValidateInline(s.Source.InlineVolumeSpec, source.Child("inlineVolumeSpec"))...)
	case *name == "":
		errs = append(errs, field.Required(source.Child("persistentVolumeName"), "must specify non empty persistentVolumeName"))
	}
	errs = append(errs, check.Messages(specPath.Child("nodeName"), s.NodeName, check.NameIsSubdomain(s.NodeName, false))...)
	if name := s.Source.PersistentVolumeName; name != nil {
		errs = append(errs, check.Messages(source.Child("persistentVolumeName"), *name, check.NameIsSubdomain(*name, false))...)
	}
	return errs
}

const maxMessage = 1024

func validateAttachmentStatus(s *storagev1.VolumeAttachmentStatus) field.ErrorList {
	status := field.NewPath("status")
	var errs field.ErrorList
	size := 0
	for key, value := range s.AttachmentMetadata {
		size += len(key) + len(value)
	}
	if size > maxParameterBytes {
		errs = append(errs, field.TooLong(status.Child("attachmentMetadata"), "", maxParameterBytes))
	}
	for _, failed := range []struct {
		name  string
		error *storagev1.VolumeError
	}{{"attachError", s.AttachError}, {"detachError", s.DetachError}} {
		if failed.error == nil {
			continue
		}
		if len(failed.error.Message) > maxMessage {
			errs = append(errs, field.TooLong(status.Child(failed.name, "message"), "", maxMessage))
		}
		if code := ptr.Deref(failed.error.ErrorCode, 0); code < 0 {
			errs = append(errs, field.Invalid(status.Child(failed.name, "errorCode"), code, validation.InclusiveRangeError(0, math.MaxInt32)))
		}
	}
	return errs
}
