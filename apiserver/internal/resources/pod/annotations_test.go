package pod

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

// TestOldAnnotations: profiles are read from the annotations of older
// manifests, and contradictions are refused.
func TestOldAnnotations(t *testing.T) {
	for text, want := range map[string]string{
		"annotations: {seccomp.security.alpha.kubernetes.io/pod: x}":            `metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile`,
		"annotations: {seccomp.security.alpha.kubernetes.io/pod: localhost//x}": `metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "/x": must be a relative path`,
		"annotations: {container.seccomp.security.alpha.kubernetes.io/c: runtime/default}": "spec.containers[0].securityContext.seccompProfile.type: Forbidden: " +
			"seccomp type in annotation and field must match",
		"annotations: {container.apparmor.security.beta.kubernetes.io/d: unconfined}": `metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container not found`,
		"annotations: {container.apparmor.security.beta.kubernetes.io/c: x}":          `metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: "x": invalid AppArmor profile name: "x"`,
		"annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined}": "",
		"annotations: {controller.kubernetes.io/pod-deletion-cost: '+1'}":             `metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer`,
		"annotations: {controller.kubernetes.io/pod-deletion-cost: '01'}":             `metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "01": must be a 32bit integer`,
		"annotations: {scheduler.alpha.kubernetes.io/tolerations: x}": `metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": ` +
			"invalid character 'x' looking for beginning of value",
		"annotations: {scheduler.alpha.kubernetes.io/tolerations: '[{\"operator\": \"Equal\"}]'}": "metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].operator: " +
			`Invalid value: "Equal": operator must be Exists when `,
	} {
		pod := &core.Pod{}
		if err := yaml.UnmarshalStrict([]byte("metadata: {name: p, "+text+"}\n"+
			"spec: {containers: [{name: c, image: i, securityContext: {seccompProfile: {type: Unconfined}}}]}"), pod); err != nil {
			t.Fatal(err)
		}
		setDefaults(pod)
		fillAppArmor(context.Background(), pod)
		checkErrors(t, text, validateCreate(pod), want)
		if want != "" {
			continue
		}
		if got := pod.Spec.Containers[0].SecurityContext.AppArmorProfile; got == nil || got.Type != corev1.AppArmorProfileTypeUnconfined {
			t.Errorf("%s gives %v", text, got)
		}
	}
}
