package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/claim"
	"kctl/proto/core"
)

func needAny(at *field.Path, name string, values []string) field.ErrorList {
	if len(values) == 0 {
		return field.ErrorList{field.Required(at.Child(name), "")}
	}
	return nil
}

func validateISCSI(i *corev1.ISCSIVolumeSource, at *field.Path) field.ErrorList {
	return check.ISCSI{
		Portal: i.TargetPortal, Name: i.IQN, LUN: i.Lun, Chap: i.DiscoveryCHAPAuth || i.SessionCHAPAuth,
		Secret: i.SecretRef != nil, Initiator: i.InitiatorName, WithPrefixes: true,
	}.Check(at)
}

// validateClaimTemplate checks a claim that is to be made for a pod: it gets its
// name and its end from the pod.
func validateClaimTemplate(t *corev1.PersistentVolumeClaimTemplate, at *field.Path) field.ErrorList {
	if t == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	meta := at.Child("metadata")
	errs := metav1validation.ValidateLabels(t.Labels, meta.Child("labels").Upstream())
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, meta.Child("annotations").Upstream())...)
	errs = append(errs, forbiddenMetadata(&t.ObjectMeta, meta)...)
	return append(errs, claim.ValidateSpec(&t.Spec, at.Child("spec"))...)
}

// forbiddenMetadata: a template has labels and annotations only.
func forbiddenMetadata(m *metav1.ObjectMeta, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, of := range []struct {
		name string
		set  bool
	}{
		{"name", m.Name != ""}, {"generateName", m.GenerateName != ""}, {"namespace", m.Namespace != ""}, {"selfLink", m.SelfLink != ""},
		{"uid", m.UID != ""}, {"resourceVersion", m.ResourceVersion != ""}, {"generation", m.Generation != 0},
		{"creationTimestamp", !m.CreationTimestamp.IsZero()}, {"deletionTimestamp", m.DeletionTimestamp != nil},
		{"deletionGracePeriodSeconds", m.DeletionGracePeriodSeconds != nil}, {"ownerReferences", len(m.OwnerReferences) > 0},
		{"finalizers", len(m.Finalizers) > 0}, {"managedFields", len(m.ManagedFields) > 0},
	} {
		if of.set {
			errs = append(errs, field.Forbidden(at.Child(of.name), "cannot be set"))
		}
	}
	return errs
}

// validateClaimNames checks the names of the claims that are to be made for a
// pod: the pod's with the volume's behind it.
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
