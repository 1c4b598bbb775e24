package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
)

// TestValidateMatchKeys: a key whose value the selector takes from the pod's label is not in the user's selector, too.
// In a template, nothing is known of the labels.
func TestValidateMatchKeys(t *testing.T) {
	const (
		spread   = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, "
		affinity = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z, "
		term     = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
		twice    = `: Invalid value: "app": exists in both matchLabelKeys and labelSelector`
	)
	for _, c := range []struct{ text, pod, template string }{
		{spread + "matchLabelKeys: [app], labelSelector: {}", "", ""},
		{spread + "matchLabelKeys: [app]", "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified",
			"spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified"},
		{spread + "matchLabelKeys: [app], labelSelector: {matchLabels: {app: web}}", "spec.topologySpreadConstraints[0][0]" + twice, ""},
		{spread + "matchLabelKeys: [none], labelSelector: {matchLabels: {none: web}}", "", ""},
		{spread + "matchLabelKeys: [a, app], labelSelector: {matchLabels: {app: web}, matchExpressions: [{key: a, operator: Exists}]}",
			"spec.topologySpreadConstraints[0][1]" + twice, ""},
		{affinity + "matchLabelKeys: [app], labelSelector: {matchExpressions: [{key: app, operator: Exists}]}", term + "[0]" + twice, ""},
		{affinity + "matchLabelKeys: [app], labelSelector: {matchLabels: {app: web}, matchExpressions: [{key: a, operator: Exists}]}",
			term + "[0]" + twice, ""},
		{affinity + "matchLabelKeys: [none], labelSelector: {matchLabels: {none: web}, matchExpressions: [{key: none, operator: Exists}]}",
			term + "[0]" + strings.Replace(twice, "app", "none", 1), term + "[0]" + strings.Replace(twice, "app", "none", 1)},
		{affinity + "mismatchLabelKeys: [app], labelSelector: {matchLabels: {app: web}}", "", ""},
		{affinity + "matchLabelKeys: [a, none], mismatchLabelKeys: [none], labelSelector: {}",
			term + `.matchLabelKeys[1]: Invalid value: "none": exists in both matchLabelKeys and mismatchLabelKeys`,
			term + `.matchLabelKeys[1]: Invalid value: "none": exists in both matchLabelKeys and mismatchLabelKeys`},
	} {
		spec := "{containers: [{name: a, image: i}], " + c.text
		pod := fromYAML(t, "metadata: {name: web, namespace: default, labels: {app: web}}\nspec: "+spec+closing(spec))
		setAllDefaults(pod)
		template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: *pod.Spec.DeepCopy()}
		want := c.template
		if want != "" {
			want = "template." + want
		}
		checkErrors(t, "template "+c.text, ValidateTemplate(template, field.NewPath("template")), want)
		prepareForCreate(t.Context(), pod, metav1.Now())
		checkErrors(t, "pod "+c.text, validateCreate(pod), c.pod)
	}
}
