package podruntime

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podactions"
	"kctl/proto/core"
)

// pullVolumes starts pulling the images that a container mounts as volumes
// (KEP-4639): each once for all containers of the pod that start now.
func (s *podSync) pullVolumes(a podactions.Actions, c podactions.Start) {
	spec, _ := s.spec(c)
	for _, volume := range imageVolumes(s.pod, spec) {
		if s.volumes[volume.Name] == nil {
			s.volumes[volume.Name] = begin(&s.background, func() (image.Present, error) {
				if err := s.beforePull(a); err != nil {
					return image.Present{}, err
				}
				s.count(ImageVolumesRequested, 1)
				return s.ensureVolume(volume)
			})
		}
	}
}

func (s *podSync) ensureVolume(volume *corev1.Volume) (image.Present, error) {
	return s.Manager.images.Ensure(s.beside, image.Request{
		Pod: s.pod, FieldPath: imageVolumePath(volume), Image: volume.Image.Reference, Policy: volume.Image.PullPolicy,
		Secrets: s.options.PullSecrets, Sandbox: s.config, Handler: s.handler,
	})
}

func imageVolumePath(volume *corev1.Volume) string {
	return fmt.Sprintf("spec.volumes{%s}", volume.Name)
}

// waitVolumes waits for the images that a container mounts.
func (s *podSync) waitVolumes(c *core.Container) (map[string]image.Present, error) {
	present := map[string]image.Present{}
	for _, volume := range imageVolumes(s.pod, c) {
		got, err := s.volumes[volume.Name].wait()
		if err != nil {
			return nil, err
		}
		if got.Found {
			s.Manager.images.TellFound(s.pod, imageVolumePath(volume), volume.Image.Reference)
		}
		present[volume.Name] = got
	}
	return present, nil
}

// imageVolumes are those of the pod's volumes that are images and that the
// container mounts.
func imageVolumes(pod *core.Pod, c *core.Container) []*corev1.Volume {
	var volumes []*corev1.Volume
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		mounted := func(m corev1.VolumeMount) bool { return m.Name == volume.Name }
		if volume.Image != nil && slices.ContainsFunc(c.VolumeMounts, mounted) {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}
