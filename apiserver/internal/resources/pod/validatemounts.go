package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

var (
	propagations = []corev1.MountPropagationMode{corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer,
		corev1.MountPropagationNone}
	readOnlyModes = []corev1.RecursiveReadOnlyMode{corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible,
		corev1.RecursiveReadOnlyEnabled}
)

// mounts checks that a container's mounts and devices are volumes of the pod,
// each at a different path.
func (s *containerScope) mounts(c *core.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	devicePaths, deviceNames := sets.New[string](), sets.New[string]()
	for _, device := range c.VolumeDevices {
		devicePaths.Insert(device.DevicePath)
		deviceNames.Insert(device.Name)
	}
	places, mounted := sets.New[string](), sets.New[string]()
	for i := range c.VolumeMounts {
		m, path := &c.VolumeMounts[i], at.Child("volumeMounts").Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		}
		if _, ok := s.volumes[m.Name]; !ok {
			errs = append(errs, field.NotFound(path.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(path.Child("mountPath"), ""))
		}
		if places.Has(m.MountPath) {
			errs = append(errs, field.Invalid(path.Child("mountPath"), m.MountPath, "must be unique"))
		}
		places.Insert(m.MountPath)
		mounted.Insert(m.Name)
		if deviceNames.Has(m.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), m.Name, "must not already exist in volumeDevices"))
		}
		if devicePaths.Has(m.MountPath) {
			errs = append(errs, field.Invalid(path.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices"))
		}
		errs = append(errs, validateMount(m, c, path, at.Child("volumeMounts"))...)
	}
	return append(errs, s.devices(c, places, mounted, at.Child("volumeDevices"))...)
}

// validateMount validates one mount. As in upstream, only one message has its
// path, mount; the others have that of the list, at.
func validateMount(m *corev1.VolumeMount, c *core.Container, mount, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.SubPath != "" {
		errs = append(errs, descendingPath(m.SubPath, at.Child("subPath"))...)
	}
	if m.SubPathExpr != "" {
		if m.SubPath != "" {
			errs = append(errs, field.Invalid(mount.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, descendingPath(m.SubPathExpr, at.Child("subPathExpr"))...)
	}
	if p := m.MountPropagation; p != nil {
		errs = append(errs, check.Supported(*p, at.Child("mountPropagation"), propagations...)...)
		privileged := c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
		if *p == corev1.MountPropagationBidirectional && !privileged {
			errs = append(errs, field.Forbidden(at.Child("mountPropagation"),
				"Bidirectional mount propagation is available only to privileged containers"))
		}
	}
	if len(m.BindMountOptions) > 0 {
		errs = append(errs, field.Forbidden(at.Child("bindMountOptions"), alphaMessage))
	}
	return append(errs, validateReadOnly(m, at.Child("recursiveReadOnly"))...)
}

func validateReadOnly(m *corev1.VolumeMount, at *field.Path) field.ErrorList {
	if m.RecursiveReadOnly == nil {
		return nil
	}
	mode := *m.RecursiveReadOnly
	errs := check.Supported(mode, at, readOnlyModes...)
	if mode != corev1.RecursiveReadOnlyIfPossible && mode != corev1.RecursiveReadOnlyEnabled {
		return errs
	}
	if !m.ReadOnly {
		errs = append(errs, field.Forbidden(at, "may only be specified when readOnly is true"))
	}
	if ptr.Deref(m.MountPropagation, corev1.MountPropagationNone) != corev1.MountPropagationNone {
		errs = append(errs, field.Forbidden(at, "may only be specified when mountPropagation is None or not specified"))
	}
	return errs
}

func (s *containerScope) devices(c *core.Container, places, mounted sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths, names := sets.New[string](), sets.New[string]()
	for i, device := range c.VolumeDevices {
		path := at.Index(i)
		errs = append(errs, check.Required(path, "name", device.Name, "devicePath", device.DevicePath)...)
		if names.Has(device.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), device.Name, "must be unique"))
		}
		names.Insert(device.Name)
		source, ok := s.volumes[device.Name]
		if !ok {
			errs = append(errs, field.NotFound(path.Child("name"), device.Name))
		} else if source.PersistentVolumeClaim == nil && source.Ephemeral == nil {
			errs = append(errs, field.Invalid(path.Child("name"), device.Name,
				"can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		if len(check.NoBacksteps(device.DevicePath, path)) > 0 {
			errs = append(errs, field.Invalid(path.Child("devicePath"), device.DevicePath, "can not contain backsteps ('..')"))
		}
		if paths.Has(device.DevicePath) {
			errs = append(errs, field.Invalid(path.Child("devicePath"), device.DevicePath, "must be unique"))
		}
		paths.Insert(device.DevicePath)
		if mounted.Has(device.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), device.Name, "must not already exist in volumeMounts"))
		}
		if places.Has(device.DevicePath) {
			errs = append(errs, field.Invalid(path.Child("devicePath"), device.DevicePath, "must not already exist as a path in volumeMounts"))
		}
	}
	return errs
}
