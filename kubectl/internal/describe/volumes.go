package describe

import (
	"encoding/json"

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
		kind := ""
		if v.HostPath.Type != nil {
			kind = string(*v.HostPath.Type)
		}
		p.line("HostPathType", "%s", kind)
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
	default:
		// A kind with no words of its own: its fields say what it is.
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("<unknown>")
		}
		p.line("Source", "%s", text)
	}
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
