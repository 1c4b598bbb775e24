package noderestriction

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// kubeletLabels are the labels under kubernetes.io that kubelets set on their
// nodes; the others there influence where pods are placed.
var kubeletLabels = map[string]bool{
	corev1.LabelHostname: true, corev1.LabelTopologyZone: true, corev1.LabelTopologyRegion: true,
	corev1.LabelFailureDomainBetaZone: true, corev1.LabelFailureDomainBetaRegion: true,
	corev1.LabelInstanceType: true, corev1.LabelInstanceTypeStable: true,
	corev1.LabelOSStable: true, corev1.LabelArchStable: true,
	"beta.kubernetes.io/os": true, "beta.kubernetes.io/arch": true, corev1.LabelWindowsBuild: true,
}

func (p *Plugin) admitNode(node string, a *admission.Attributes) error {
	name := a.Name
	if a.Operation == admission.Create && name == "" {
		name = a.Object.GetName()
	}
	if name != node {
		return fmt.Errorf("node %q is not allowed to modify node %q", node, name)
	}
	switch a.Operation {
	case admission.Create:
		if a.Object.(*core.Node).Spec.ConfigSource != nil {
			return fmt.Errorf("node %q is not allowed to create pods with a non-nil configSource", node) // upstream's word
		}
		if err := p.ranges(node, a.Object.(*core.Node).Spec.PodCIDRs, nil); err != nil {
			return err
		}
		if forbidden := forbiddenLabels(a.Object.GetLabels(), nil); forbidden != "" {
			return fmt.Errorf("node %q is not allowed to set the following labels: %s", node, forbidden)
		}
	case admission.Update:
		now, old := a.Object.(*core.Node), a.OldObject.(*core.Node)
		if !equality.Semantic.DeepEqual(now.Spec.Taints, old.Spec.Taints) {
			return fmt.Errorf("node %q is not allowed to modify taints", node)
		}
		if source := now.Spec.ConfigSource; source != nil && !equality.Semantic.DeepEqual(source, old.Spec.ConfigSource) {
			return fmt.Errorf("node %q is not allowed to update configSource to a new non-nil configSource", node)
		}
		if !equality.Semantic.DeepEqual(now.OwnerReferences, old.OwnerReferences) {
			return fmt.Errorf("node %q is not allowed to modify ownerReferences", node)
		}
		if err := p.ranges(node, now.Spec.PodCIDRs, old.Spec.PodCIDRs); err != nil {
			return err
		}
		if forbidden := forbiddenLabels(now.Labels, old.Labels); forbidden != "" {
			return fmt.Errorf("is not allowed to modify labels: %s", forbidden)
		}
	}
	return nil
}

// ranges refuses ranges of pods that a node chooses itself: all others send it the
// packets to them, and none of these could be given to another node.
func (p *Plugin) ranges(node string, now, old []string) error {
	if p.RangesGiven && !slices.Equal(now, old) {
		return fmt.Errorf("node %q is not allowed to set podCIDRs, which the API server gives (--allocate-node-cidrs)", node)
	}
	return nil
}

// forbiddenLabels are the changed labels that a kubelet may not set.
func forbiddenLabels(now, old map[string]string) string {
	var forbidden []string
	changed := func(key string) {
		if !kubeletMaySet(key) {
			forbidden = append(forbidden, key)
		}
	}
	for key, value := range now {
		if was, had := old[key]; !had || was != value {
			changed(key)
		}
	}
	for key := range old {
		if _, has := now[key]; !has {
			changed(key)
		}
	}
	slices.Sort(forbidden)
	return strings.Join(forbidden, ", ")
}

func kubeletMaySet(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified || !isSubdomain(domain, "kubernetes.io") && !isSubdomain(domain, "k8s.io") {
		return true
	}
	return kubeletLabels[key] || isSubdomain(domain, "kubelet.kubernetes.io") || isSubdomain(domain, "node.kubernetes.io")
}

func isSubdomain(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
