package runtimeconfig

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/image"
	"kctl/proto/core"
)

// Whoever runs a container has the groups of its pod's volumes, each once.
func TestContainersHaveTheirVolumesGroups(t *testing.T) {
	fsGroup := int64(7)
	for name, c := range map[string]struct {
		security *corev1.PodSecurityContext
		want     []int64
	}{
		"no security context": {nil, []int64{8, 9}},
		"groups of its own":   {&corev1.PodSecurityContext{FSGroup: &fsGroup, SupplementalGroups: []int64{9}}, []int64{7, 9, 8}},
	} {
		m := &Maker{Options: Options{VolumeGroups: func(types.UID) []int64 { return []int64{8, 9} }}}
		pod := &core.Pod{Spec: corev1.PodSpec{SecurityContext: c.security, Containers: []core.Container{{Name: "c"}}}}
		security, err := m.linuxSecurity(pod, &pod.Spec.Containers[0], image.Present{})
		if err != nil || !slices.Equal(security.SupplementalGroups, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, security.GetSupplementalGroups(), err, c.want)
		}
	}
}
