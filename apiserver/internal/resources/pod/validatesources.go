package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/claim"
	"kctl/proto/core"
)

func validateISCSI(i *corev1.ISCSIVolumeSource, at *field.Path) field.ErrorList {
	return check.ISCSI{
		Portal: i.TargetPortal, Name: i.IQN, LUN: i.Lun, Chap: i.DiscoveryCHAPAuth || i.SessionCHAPAuth,
		Secret: i.SecretRef != nil, Initiator: i.InitiatorName, WithPrefixes: true,
	}.Check(at)
}

// validateClaimTemplate validates the template of a claim for a pod, which gets
// its name and lifetime from the pod.
func validateClaimTemplate(t *corev1.PersistentVolumeClaimTemplate, at *field.Path) field.ErrorList {
	if t == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	return append(check.TemplateMetadata(&t.ObjectMeta, at.Child("metadata")), claim.ValidateSpec(&t.Spec, at.Child("spec"))...)
}

// validateClaimNames validates the names of claims for a pod, made from the
// pod's and the volume's name.
func validateClaimNames(pod *core.Pod, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral == nil || pod.Name == "" {
			continue
		}
		name := pod.Name + "-" + v.Name
		for _, text := range check.NameIsSubdomain(name, false) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), v.Name, fmt.Sprintf("PVC name %q: %s", name, text)))
		}
	}
	return errs
}
