package runtimehealth

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

func TestImageVolumesNeedANewRuntime(t *testing.T) {
	pod := &core.Pod{Spec: core.PodSpec{Volumes: []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "models", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "i"}}},
	}}}
	for runtime, fine := range map[string]bool{
		"containerd://1.6.20~ds1": false, "containerd://2.0.5": false, "containerd://2.1.0-rc.1": true, "containerd://v2.4.2": true,
		"cri-o://1.30.1": false, "cri-o://1.33.0": true, "other://1.0": true, "containerd://devel": true, "": true,
	} {
		err := checkImageVolumes(pod, runtime)
		if (err == nil) != fine || err != nil && !strings.Contains(err.Error(), `volume "models": image volumes are not supported by the container runtime`) {
			t.Errorf("%s: %v", runtime, err)
		}
		if err := checkImageVolumes(&core.Pod{}, runtime); err != nil {
			t.Errorf("%s without volumes: %v", runtime, err)
		}
	}
}
