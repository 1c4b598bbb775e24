package podsecurity

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	admissionapi "k8s.io/pod-security-admission/admission/api"
	admissionv1 "k8s.io/pod-security-admission/admission/api/v1"
	"k8s.io/pod-security-admission/admission/api/validation"
	"k8s.io/pod-security-admission/api"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/proto/core"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// exemptions are users, namespaces and runtime classes that are exempt.
type exemptions struct{ usernames, namespaces, runtimeClasses sets.Set[string] }

// requester returns why a request is exempt whatever the pod; "" if it is not.
func (e *exemptions) requester(a *admission.Attributes) string {
	switch {
	case e.namespaces.Has(a.Namespace):
		return "namespace"
	case a.User != nil && e.usernames.Has(a.User.Username):
		return "user"
	}
	return ""
}

// runtimeClass reports whether pods of the class are exempt.
func (e *exemptions) runtimeClass(spec *core.PodSpec) bool {
	return spec.RuntimeClassName != nil && e.runtimeClasses.Has(*spec.RuntimeClassName)
}

// readSettings returns the policy of namespaces without labels, and the exemptions.
func readSettings(files configuration.Files) (api.Policy, exemptions, error) {
	const group = "pod-security.admission.config.k8s.io/"
	kind := configuration.Kind{Kind: "PodSecurityConfiguration", Versions: []string{group + "v1", group + "v1beta1", group + "v1alpha1"}}
	var file admissionv1.PodSecurityConfiguration
	if _, err := files.Decode(Name, kind, &file); err != nil {
		return api.Policy{}, exemptions{}, err
	}
	admissionv1.SetDefaults_PodSecurityDefaults(&file.Defaults)
	settings := &admissionapi.PodSecurityConfiguration{
		Defaults: admissionapi.PodSecurityDefaults(file.Defaults), Exemptions: admissionapi.PodSecurityExemptions(file.Exemptions),
	}
	if errs := validation.ValidatePodSecurityConfiguration(settings); len(errs) > 0 {
		return api.Policy{}, exemptions{}, fmt.Errorf("configuration of %s: %w", Name, errs.ToAggregate())
	}
	defaults, err := admissionapi.ToPolicy(settings.Defaults)
	of := settings.Exemptions
	return defaults, exemptions{sets.New(of.Usernames...), sets.New(of.Namespaces...), sets.New(of.RuntimeClasses...)}, err
}

// hasPolicyLabels reports whether a namespace has Pod Security labels.
func hasPolicyLabels(labels map[string]string) bool {
	for key := range labels {
		if strings.HasPrefix(key, api.AuditAnnotationPrefix) {
			return true
		}
	}
	return false
}

// podTemplate is the pod template of obj, nil if it has none.
func podTemplate(obj core.Object) (*metav1.ObjectMeta, *core.PodSpec) {
	var t *corev1.PodTemplateSpec
	switch o := obj.(type) {
	case *corev1.PodTemplate:
		t = &o.Template
	case *corev1.ReplicationController:
		t = o.Spec.Template
	case *appsv1.ReplicaSet:
		t = &o.Spec.Template
	case *appsv1.Deployment:
		t = &o.Spec.Template
	case *appsv1.DaemonSet:
		t = &o.Spec.Template
	case *appsv1.StatefulSet:
		t = &o.Spec.Template
	case *batchv1.Job:
		t = &o.Spec.Template
	case *batchv1.CronJob:
		t = &o.Spec.JobTemplate.Spec.Template
	}
	if t == nil {
		return nil, nil
	}
	return &t.ObjectMeta, &t.Spec
}
