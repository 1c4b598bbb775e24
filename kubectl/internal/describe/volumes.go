package describe

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// volumes writes those of a pod, or, one space in as its containers are, those
// of a template.
func (p *page) volumes(volumes []corev1.Volume) {
	if len(volumes) == 0 {
		p.line("Volumes", "<none>")
		return
	}
	p.head("Volumes")
	for i := range volumes {
		if p.level > 0 {
			p.text(" %s:", volumes[i].Name)
			p.under(func() { p.volume(&volumes[i].VolumeSource) })
			continue
		}
		p.under(func() {
			p.head(volumes[i].Name)
			p.under(func() { p.volume(&volumes[i].VolumeSource) })
		})
	}
}

func (p *page) volume(v *corev1.VolumeSource) {
	switch {
	case v.EmptyDir != nil:
		p.line("Type", "EmptyDir (a temporary directory that shares a pod's lifetime)")
		p.line("Medium", "%s", v.EmptyDir.Medium)
		limit := "<unset>"
		if v.EmptyDir.SizeLimit != nil {
			limit = v.EmptyDir.SizeLimit.String()
		}
		p.line("SizeLimit", "%s", limit)
	case v.HostPath != nil:
		p.line("Type", "HostPath (bare host directory volume)")
		p.line("Path", "%s", v.HostPath.Path)
		p.line("HostPathType", "%s", ptr.Deref(v.HostPath.Type, ""))
	case v.Secret != nil:
		p.line("Type", "Secret (a volume populated by a Secret)")
		p.line("SecretName", "%s", v.Secret.SecretName)
		p.line("Optional", "%t", ptr.Deref(v.Secret.Optional, false))
	case v.ConfigMap != nil:
		p.line("Type", "ConfigMap (a volume populated by a ConfigMap)")
		p.line("Name", "%s", v.ConfigMap.Name)
		p.line("Optional", "%t", ptr.Deref(v.ConfigMap.Optional, false))
	case v.Projected != nil:
		p.projected(v.Projected)
	case v.DownwardAPI != nil:
		p.line("Type", "DownwardAPI (a volume populated by information about the pod)")
		p.head("Items")
		for _, item := range v.DownwardAPI.Items {
			if item.FieldRef != nil {
				p.under(func() { p.text("%s -> %s", item.FieldRef.FieldPath, item.Path) })
			} else if item.ResourceFieldRef != nil {
				p.under(func() { p.text("%s -> %s", item.ResourceFieldRef.Resource, item.Path) })
			}
		}
	case v.PersistentVolumeClaim != nil:
		p.line("Type", "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)")
		p.line("ClaimName", "%s", v.PersistentVolumeClaim.ClaimName)
		p.line("ReadOnly", "%t", v.PersistentVolumeClaim.ReadOnly)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		p.line("Type", "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)")
		p.claimOf(v.Ephemeral.VolumeClaimTemplate)
	case v.NFS != nil:
		p.line("Type", "NFS (an NFS mount that lasts the lifetime of a pod)")
		p.line("Server", "%s", v.NFS.Server)
		p.line("Path", "%s", v.NFS.Path)
		p.line("ReadOnly", "%t", v.NFS.ReadOnly)
	case v.CSI != nil:
		p.line("Type", "CSI (a Container Storage Interface (CSI) volume source)")
		p.line("Driver", "%s", v.CSI.Driver)
		p.line("FSType", "%s", ptr.Deref(v.CSI.FSType, ""))
		p.line("ReadOnly", "%t", ptr.Deref(v.CSI.ReadOnly, false))
		p.setIn("VolumeAttributes", "=", v.CSI.VolumeAttributes, "<none>")
	case v.Image != nil:
		p.line("Type", "Image (a container image or OCI artifact)")
		p.line("Reference", "%s", v.Image.Reference)
		p.line("PullPolicy", "%s", v.Image.PullPolicy)
	case !p.oldVolume(v):
		p.text("<unknown>") // a kind that is newer than this kctl
	}
}

// claimOf describes the claim that is made with a pod, of which nothing is known yet but
// what it asks for.
func (p *page) claimOf(t *corev1.PersistentVolumeClaimTemplate) {
	p.line("StorageClass", "%s", ptr.Deref(t.Spec.StorageClassName, ""))
	p.line("Volume", "%s", t.Spec.VolumeName)
	p.setIn("Labels", "=", t.Labels, inset+"<none>")
	p.setIn("Annotations", ": ", t.Annotations, inset+"<none>")
	p.line("Capacity", "")
	p.line("Access Modes", "")
	if t.Spec.VolumeMode != nil {
		p.line("VolumeMode", "%s", *t.Spec.VolumeMode)
	}
}

// inset is how far kubectl sets in the values of maps from the other ones of a volume, and,
// of claims, also that there are none.
const inset = "    "

// setIn writes a map below a volume, or none.
func (p *page) setIn(label, between string, all map[string]string, none string) {
	if len(all) == 0 {
		p.line(label, "%s", none)
		return
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := name + between + all[name]
		if len(text) > noteWidth {
			text = text[:noteWidth] + "..."
		}
		texts = append(texts, inset+text)
	}
	p.column(label, "", texts)
}

func (p *page) projected(v *corev1.ProjectedVolumeSource) {
	p.line("Type", "Projected (a volume that contains injected data from multiple sources)")
	for i := range v.Sources {
		source := &v.Sources[i]
		switch {
		case source.ServiceAccountToken != nil && source.ServiceAccountToken.ExpirationSeconds != nil:
			p.line("TokenExpirationSeconds", "%d", *source.ServiceAccountToken.ExpirationSeconds)
		case source.ConfigMap != nil:
			p.line("ConfigMapName", "%s", source.ConfigMap.Name)
			p.line("Optional", "%t", ptr.Deref(source.ConfigMap.Optional, false))
		case source.Secret != nil:
			p.line("SecretName", "%s", source.Secret.Name)
			p.line("Optional", "%t", ptr.Deref(source.Secret.Optional, false))
		case source.DownwardAPI != nil:
			p.line("DownwardAPI", "true")
		}
	}
}
