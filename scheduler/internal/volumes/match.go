package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"kctl/proto/core"
)

// OnNode reports whether the volume can be used on a node: by the node's labels alone, as
// upstream's scheduler and every kubelet have it. Fields are no part of a volume's affinity.
func OnNode(volume *corev1.PersistentVolume, node *core.Node) bool {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
	return err == nil && selector.Match(&core.Node{ObjectMeta: metav1.ObjectMeta{Labels: node.Labels}})
}

// Find is the smallest volume that a claim can have on a node, leaving out
// taken; nil if there is none.
func (v *Volumes) Find(claim *corev1.PersistentVolumeClaim, node *core.Node, taken map[string]bool) *corev1.PersistentVolume {
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	if err != nil {
		return nil
	}
	var best *corev1.PersistentVolume
	for _, volume := range v.volumes.ByIndex(byClass, ClassName(claim)) {
		if taken[volume.Name] || !v.free(volume, claim) || !OnNode(volume, node) {
			continue
		}
		if ref := volume.Spec.ClaimRef; ref != nil {
			return volume // kept for this claim
		}
		if (claim.Spec.Selector == nil || selector.Matches(labels.Set(volume.Labels))) && (best == nil || smaller(volume, best)) {
			best = volume
		}
	}
	return best
}

// free reports whether the claim may have the volume, on any node.
func (v *Volumes) free(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if ref := volume.Spec.ClaimRef; ref != nil {
		if ref.Namespace != claim.Namespace || ref.Name != claim.Name || ref.UID != "" && ref.UID != claim.UID {
			return false
		}
	} else if volume.Status.Phase != corev1.VolumeAvailable {
		return false
	}
	v.mu.Lock()
	owner, chosen := v.chosen[volume.Name]
	v.mu.Unlock()
	want, have := claim.Spec.Resources.Requests[corev1.ResourceStorage], volume.Spec.Capacity[corev1.ResourceStorage]
	return (!chosen || owner == claim.UID) && volume.DeletionTimestamp == nil && have.Cmp(want) >= 0 &&
		mode(volume.Spec.VolumeMode) == mode(claim.Spec.VolumeMode) &&
		text(volume.Spec.VolumeAttributesClassName) == text(claim.Spec.VolumeAttributesClassName) &&
		!slices.ContainsFunc(claim.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
			return !slices.Contains(volume.Spec.AccessModes, m)
		})
}

func mode(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// smaller orders volumes by size, and equals by name.
func smaller(a, b *corev1.PersistentVolume) bool {
	sizeA, sizeB := a.Spec.Capacity[corev1.ResourceStorage], b.Spec.Capacity[corev1.ResourceStorage]
	if by := sizeA.Cmp(sizeB); by != 0 {
		return by < 0
	}
	return a.Name < b.Name
}

// Choose keeps the volume for the claim until Drop, or until the API has it.
func (v *Volumes) Choose(volume string, claim types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.chosen[volume] = claim
}

// Drop ends Choose.
func (v *Volumes) Drop(volume string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.chosen, volume)
}

// Provisioning is whether a volume could be made for a claim on a node.
type Provisioning int

const (
	Possible Provisioning = iota
	Impossible
	NoCapacity
)

// Provisioning reports whether the claim's class could provision a volume that
// the node can use, and the room for it; nil if the driver does not report
// that.
func (v *Volumes) Provisioning(claim *corev1.PersistentVolumeClaim, node *core.Node) (possible Provisioning, room *resource.Quantity) {
	class := v.Class(claim)
	if class == nil || class.Provisioner == "" || class.Provisioner == noProvisioner || !within(class.AllowedTopologies, node) {
		return Impossible, nil
	}
	driver, known := v.drivers.Get("", class.Provisioner)
	if !known || !countsCapacity(driver) {
		return Possible, nil
	}
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	for _, capacity := range v.capacities.ByIndex(byClass, class.Name) {
		most := largest(capacity)
		if most == nil || most.Cmp(want) < 0 || capacity.NodeTopology == nil {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(capacity.NodeTopology); err == nil && selector.Matches(labels.Set(node.Labels)) {
			return Possible, capacity.Capacity
		}
	}
	return NoCapacity, nil
}

// within reports whether a node is in one of the topologies; none stands for all.
func within(topologies []corev1.TopologySelectorTerm, node *core.Node) bool {
	for _, term := range topologies {
		if !slices.ContainsFunc(term.MatchLabelExpressions, func(r corev1.TopologySelectorLabelRequirement) bool {
			value, has := node.Labels[r.Key]
			return !has || !slices.Contains(r.Values, value)
		}) {
			return true
		}
	}
	return len(topologies) == 0
}
