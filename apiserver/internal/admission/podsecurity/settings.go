package podsecurity

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/proto/core"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// exemptions are users, namespaces and runtime classes that are exempt.
type exemptions struct{ usernames, namespaces, runtimeClasses map[string]bool }

// requester returns why a request is exempt whatever the pod; "" if it is not.
func (e *exemptions) requester(a *admission.Attributes) string {
	switch {
	case e.namespaces[a.Namespace]:
		return "namespace"
	case a.User != nil && e.usernames[a.User.Username]:
		return "user"
	}
	return ""
}

// runtimeClass reports whether pods of the class are exempt.
func (e *exemptions) runtimeClass(spec *core.PodSpec) bool {
	return spec.RuntimeClassName != nil && e.runtimeClasses[*spec.RuntimeClassName]
}

// settings are upstream's PodSecurityConfiguration.
type settings struct {
	Defaults struct {
		Enforce        string `json:"enforce"`
		EnforceVersion string `json:"enforce-version"`
		Audit          string `json:"audit"`
		AuditVersion   string `json:"audit-version"`
		Warn           string `json:"warn"`
		WarnVersion    string `json:"warn-version"`
	} `json:"defaults"`
	Exemptions struct {
		Usernames      []string `json:"usernames"`
		Namespaces     []string `json:"namespaces"`
		RuntimeClasses []string `json:"runtimeClasses"`
	} `json:"exemptions"`
}

const group = "pod-security.admission.config.k8s.io/"

// readSettings returns the policy of namespaces without labels, and the exemptions.
func readSettings(files configuration.Files) (api.Policy, exemptions, error) {
	var s settings
	kind := configuration.Kind{Kind: "PodSecurityConfiguration", Versions: []string{group + "v1", group + "v1beta1", group + "v1alpha1"}}
	if _, err := files.Decode(Name, kind, &s); err != nil {
		return api.Policy{}, exemptions{}, err
	}
	var defaults api.Policy
	for _, d := range []struct {
		name, level, version string
		into                 *api.LevelVersion
	}{
		{"enforce", s.Defaults.Enforce, s.Defaults.EnforceVersion, &defaults.Enforce},
		{"audit", s.Defaults.Audit, s.Defaults.AuditVersion, &defaults.Audit},
		{"warn", s.Defaults.Warn, s.Defaults.WarnVersion, &defaults.Warn},
	} {
		var err error
		if *d.into, err = levelVersion(d.level, d.version); err != nil {
			return api.Policy{}, exemptions{}, fmt.Errorf("configuration of %s: defaults.%s: %w", Name, d.name, err)
		}
	}
	return defaults, exemptions{
		usernames: toSet(s.Exemptions.Usernames), namespaces: toSet(s.Exemptions.Namespaces), runtimeClasses: toSet(s.Exemptions.RuntimeClasses),
	}, nil
}

func levelVersion(level, version string) (api.LevelVersion, error) {
	out := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	var err error
	if level != "" {
		if out.Level, err = api.ParseLevel(level); err != nil {
			return out, err
		}
	}
	if version != "" {
		out.Version, err = api.ParseVersion(version)
	}
	return out, err
}

func toSet(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out
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
