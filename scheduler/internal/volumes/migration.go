package volumes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"

	"kctl/proto/core"
)

// In-tree volumes are mounted by the CSI drivers that have taken their kinds over
// (KEP-625), and by what these drivers know them by they have to be counted and placed.

var translator = csitranslation.New()

// migrates reports whether a scheduler treats an in-tree kind of volume as its driver's, by
// the kind's name: upstream leaves out vSphere's and Azure's files.
func migrates(kind string) bool {
	switch kind {
	case plugins.AWSEBSInTreePluginName, plugins.GCEPDInTreePluginName, plugins.AzureDiskInTreePluginName,
		plugins.CinderInTreePluginName, plugins.PortworxVolumePluginName:
		return true
	}
	return false
}

// HasMigratable reports whether pod has an in-tree volume without a claim that a driver may
// mount.
func HasMigratable(pod *core.Pod) bool {
	for i := range pod.Spec.Volumes {
		if translator.IsInlineMigratable(&pod.Spec.Volumes[i]) {
			return true
		}
	}
	return false
}

// kindOf is the in-tree kind of a volume that a driver may mount; empty for others.
func kindOf(volume *corev1.PersistentVolume) string {
	if volume.Spec.CSI != nil || !translator.IsPVMigratable(volume) { // most are; the error below would be expensive
		return ""
	}
	kind, err := translator.GetInTreePluginNameFromSpec(volume, nil)
	if err != nil {
		return ""
	}
	return kind
}

// migratesOn reports whether the drivers of in-tree volumes may mount them on a node, which
// has to have told of drivers for that.
func (v *Volumes) migratesOn(kind, node string) bool {
	if !migrates(kind) {
		return false
	}
	_, known := v.nodes.Get("", node)
	return known
}

// Source is what a driver knows a volume by on a node; nil if no driver does.
func (v *Volumes) Source(volume *corev1.PersistentVolume, node string) *corev1.CSIPersistentVolumeSource {
	if volume.Spec.CSI != nil {
		return volume.Spec.CSI
	}
	if !v.migratesOn(kindOf(volume), node) {
		return nil
	}
	translated, err := translator.TranslateInTreePVToCSI(klog.Logger{}, volume)
	if err != nil {
		return nil // no driver will know it
	}
	return translated.Spec.CSI
}

// Inline is Source for a volume that a pod has without a claim. The error says why a
// driver can't know it.
func (v *Volumes) Inline(volume *corev1.Volume, namespace, node string) (*corev1.CSIPersistentVolumeSource, error) {
	if volume.PersistentVolumeClaim != nil || !translator.IsInlineMigratable(volume) {
		return nil, nil
	}
	kind, err := translator.GetInTreePluginNameFromSpec(nil, volume)
	if err != nil || !v.migratesOn(kind, node) {
		return nil, nil
	}
	translated, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Logger{}, volume, namespace)
	if err != nil {
		return nil, err
	}
	return translated.Spec.CSI, nil
}

// Driver is the driver that makes the volumes of a class, for pods on a node; empty if an
// in-tree provisioner does.
func (v *Volumes) Driver(class *storagev1.StorageClass, node string) string {
	if !translator.IsMigratableIntreePluginByName(class.Provisioner) {
		return class.Provisioner
	}
	if !v.migratesOn(class.Provisioner, node) {
		return ""
	}
	driver, err := translator.GetCSINameFromInTreeName(class.Provisioner)
	if err != nil {
		return ""
	}
	return driver
}

// Migrated is the volume as it is on a node: in-tree ones have their drivers' topology where
// the kubelet has handed their kind over to a driver.
func (v *Volumes) Migrated(volume *corev1.PersistentVolume, node string) (*corev1.PersistentVolume, error) {
	kind := kindOf(volume)
	if !migrates(kind) {
		return volume, nil
	}
	found, known := v.nodes.Get("", node)
	if !known || !slices.Contains(strings.Split(found.Annotations[corev1.MigratedPluginsAnnotationKey], ","), kind) {
		return volume, nil
	}
	return translator.TranslateInTreePVToCSI(klog.Logger{}, volume)
}
