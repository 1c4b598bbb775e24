package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// modes are access modes by their short names.
func modes(all []corev1.PersistentVolumeAccessMode) string {
	short := map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX", corev1.ReadWriteOncePod: "RWOP",
	}
	var words []string
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany,
		corev1.ReadWriteOncePod} {
		if slices.Contains(all, mode) {
			words = append(words, short[mode])
		}
	}
	return strings.Join(words, ",")
}

func (p *page) claim(c *corev1.PersistentVolumeClaim, events []core.Event) {
	p.names(&c.ObjectMeta)
	p.line("StorageClass", "%s", ptr.Deref(c.Spec.StorageClassName, ""))
	if c.DeletionTimestamp != nil {
		p.line("Status", "Terminating (lasts %s)", formatAge(c.DeletionTimestamp.Time, p.now))
	} else {
		p.line("Status", "%s", c.Status.Phase)
	}
	p.line("Volume", "%s", c.Spec.VolumeName)
	p.marks(&c.ObjectMeta)
	p.line("Finalizers", "%v", c.Finalizers)
	capacity, access := "", ""
	if c.Spec.VolumeName != "" { // what it has is said of claims that have a volume
		access = modes(c.Status.AccessModes)
		amount := c.Status.Capacity[corev1.ResourceStorage]
		capacity = amount.String()
	}
	p.line("Capacity", "%s", capacity)
	p.line("Access Modes", "%s", access)
	if c.Spec.VolumeMode != nil {
		p.line("VolumeMode", "%s", *c.Spec.VolumeMode)
	}
	if source := c.Spec.DataSource; source != nil {
		p.head("DataSource")
		p.under(func() {
			if source.APIGroup != nil {
				p.line("APIGroup", "%s", *source.APIGroup)
			}
			p.line("Kind", "%s", source.Kind)
			p.line("Name", "%s", source.Name)
		})
	}
	var users []string
	for i := range p.around.Pods {
		users = append(users, p.around.Pods[i].Name)
	}
	p.line("Used By", "%s", cmp.Or(strings.Join(users, "\n\t"), "<none>"))
	// The line under LastProbeTime is too long in kubectl, too.
	conditions(p, c.Status.Conditions, []string{"Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage",
		"----\t------\t-----------------\t------------------\t------\t-------"}, func(c corev1.PersistentVolumeClaimCondition) string {
		return fmt.Sprintf("%s \t%s \t%s \t%s \t%s \t%s",
			c.Type, c.Status, c.LastProbeTime.Format(timeFormat), c.LastTransitionTime.Format(timeFormat), c.Reason, c.Message)
	})
	p.events(events)
}

func (p *page) persistentVolume(v *corev1.PersistentVolume, events []core.Event) {
	p.line("Name", "%s", v.Name)
	p.marks(&v.ObjectMeta)
	p.line("Finalizers", "%v", v.Finalizers)
	p.line("StorageClass", "%s", v.Spec.StorageClassName)
	if v.DeletionTimestamp != nil {
		p.line("Status", "Terminating (lasts %s)", formatAge(v.DeletionTimestamp.Time, p.now))
	} else {
		p.line("Status", "%s", v.Status.Phase)
	}
	claim := ""
	if v.Spec.ClaimRef != nil {
		claim = v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
	}
	p.line("Claim", "%s", claim)
	p.line("Reclaim Policy", "%s", v.Spec.PersistentVolumeReclaimPolicy)
	p.line("Access Modes", "%s", modes(v.Spec.AccessModes))
	if v.Spec.VolumeMode != nil {
		p.line("VolumeMode", "%s", *v.Spec.VolumeMode)
	}
	capacity := v.Spec.Capacity[corev1.ResourceStorage]
	p.line("Capacity", "%s", capacity.String())
	p.nodeAffinity(v.Spec.NodeAffinity)
	p.line("Message", "%s", v.Status.Message)
	p.text("Source:")
	p.under(func() { p.under(func() { p.persistentSource(&v.Spec.PersistentVolumeSource) }) })
	p.events(events)
}

func (p *page) nodeAffinity(a *corev1.VolumeNodeAffinity) {
	if a == nil || a.Required == nil {
		p.line("Node Affinity", "<none>")
		return
	}
	p.line("Node Affinity", "")
	p.under(func() {
		if len(a.Required.NodeSelectorTerms) == 0 {
			p.line("Required Terms", "<none>")
			return
		}
		p.line("Required Terms", "")
		p.under(func() {
			for i, term := range a.Required.NodeSelectorTerms {
				var words []string
				for _, e := range term.MatchExpressions {
					words = append(words, requirement(e.Key, string(e.Operator), e.Values))
				}
				p.term(i, words)
			}
		})
	})
}

// term writes one of several terms, of which each has requirements.
func (p *page) term(i int, requirements []string) {
	p.line(fmt.Sprintf("Term %d", i), "%s", cmp.Or(strings.Join(requirements, "\n\t"), "<none>"))
}

func requirement(key, operator string, values []string) string {
	text := key + " " + strings.ToLower(operator)
	if len(values) > 0 {
		text += " [" + strings.Join(values, ", ") + "]"
	}
	return text
}

func (p *page) persistentSource(s *corev1.PersistentVolumeSource) {
	switch {
	case s.HostPath != nil:
		p.volume(&corev1.VolumeSource{HostPath: s.HostPath})
	case s.CSI != nil:
		p.line("Type", "CSI (a Container Storage Interface (CSI) volume source)")
		p.line("Driver", "%s", s.CSI.Driver)
		p.line("FSType", "%s", s.CSI.FSType)
		p.line("VolumeHandle", "%s", s.CSI.VolumeHandle)
		p.line("ReadOnly", "%t", s.CSI.ReadOnly)
		p.pairs("VolumeAttributes", s.CSI.VolumeAttributes)
	case s.NFS != nil:
		p.volume(&corev1.VolumeSource{NFS: s.NFS})
	case s.Local != nil:
		p.line("Type", "LocalVolume (a persistent volume backed by local storage on a node)")
		p.line("Path", "%s", s.Local.Path)
	case !p.oldSource(s):
		p.fieldsOf(s)
	}
}

func (p *page) storageClassOf(c *storageClass, events []core.Event) {
	p.line("Name", "%s", c.Name)
	isDefault := "No"
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true" {
		isDefault = "Yes"
	}
	p.line("IsDefaultClass", "%s", isDefault)
	p.line("Annotations", "%s", labels.FormatLabels(c.Annotations))
	p.line("Provisioner", "%s", c.Provisioner)
	p.line("Parameters", "%s", labels.FormatLabels(c.Parameters))
	expands := "<unset>"
	if c.AllowVolumeExpansion != nil {
		expands = formatBool(*c.AllowVolumeExpansion)
	}
	p.line("AllowVolumeExpansion", "%s", expands)
	if len(c.MountOptions) == 0 {
		p.line("MountOptions", "<none>")
	} else {
		p.words("MountOptions", c.MountOptions)
	}
	if c.ReclaimPolicy != nil {
		p.line("ReclaimPolicy", "%s", *c.ReclaimPolicy)
	}
	if c.VolumeBindingMode != nil {
		p.line("VolumeBindingMode", "%s", *c.VolumeBindingMode)
	}
	if c.AllowedTopologies != nil {
		p.line("AllowedTopologies", "")
		p.under(func() {
			for i, term := range c.AllowedTopologies {
				var words []string
				for _, e := range term.MatchLabelExpressions {
					words = append(words, requirement(e.Key, "in", e.Values))
				}
				p.term(i, words)
			}
		})
	}
	p.events(events)
}

func (p *page) storageNodeOf(n *storageNode, events []core.Event) {
	p.line("Name", "%s", n.Name)
	p.marks(&n.ObjectMeta)
	p.line("CreationTimestamp", "%s", n.CreationTimestamp.Format(timeFormat))
	p.head("Spec")
	p.under(func() {
		if len(n.Spec.Drivers) == 0 {
			return
		}
		p.head("Drivers")
		for i := range n.Spec.Drivers {
			p.under(func() { p.storageDriver(&n.Spec.Drivers[i]) })
		}
	})
	p.events(events)
}

func (p *page) storageDriver(driver *storageDriver) {
	p.head(driver.Name)
	p.under(func() {
		p.line("Node ID", "%s", driver.NodeID)
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			p.head("Allocatables")
			p.under(func() { p.line("Count", "%d", *driver.Allocatable.Count) })
		}
		if driver.TopologyKeys != nil {
			p.line("Topology Keys", "%s", driver.TopologyKeys)
		}
	})
}
