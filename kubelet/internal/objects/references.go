package objects

import (
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// references are the objects that a pod names.
type references struct {
	secrets, configMaps map[types.NamespacedName]bool
}

// referencesOf finds every secret and config map that the pod's volumes,
// environments and image pulls are taken from.
func referencesOf(pod *core.Pod) references {
	r := contentOf(pod)
	for _, pull := range pod.Spec.ImagePullSecrets {
		add(r.secrets, pod.Namespace, pull.Name)
	}
	return r
}

// contentOf is what its containers can't do without: everything but the pull secrets.
func contentOf(pod *core.Pod) references {
	r := references{secrets: map[types.NamespacedName]bool{}, configMaps: map[types.NamespacedName]bool{}}
	secret := func(name string) { add(r.secrets, pod.Namespace, name) }
	configMap := func(name string) { add(r.configMaps, pod.Namespace, name) }

	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.Secret != nil:
			secret(volume.Secret.SecretName)
		case volume.ConfigMap != nil:
			configMap(volume.ConfigMap.Name)
		case volume.Projected != nil:
			for _, source := range volume.Projected.Sources {
				if source.Secret != nil {
					secret(source.Secret.Name)
				}
				if source.ConfigMap != nil {
					configMap(source.ConfigMap.Name)
				}
			}
		}
	}
	for container := range core.Containers(&pod.Spec) {
		environment(container, secret, configMap)
	}
	return r
}

func environment(container *core.Container, secret, configMap func(string)) {
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil {
			secret(from.SecretRef.Name)
		}
		if from.ConfigMapRef != nil {
			configMap(from.ConfigMapRef.Name)
		}
	}
	for _, env := range container.Env {
		if env.ValueFrom == nil {
			continue
		}
		if env.ValueFrom.SecretKeyRef != nil {
			secret(env.ValueFrom.SecretKeyRef.Name)
		}
		if env.ValueFrom.ConfigMapKeyRef != nil {
			configMap(env.ValueFrom.ConfigMapKeyRef.Name)
		}
	}
}

func add(to map[types.NamespacedName]bool, namespace, name string) {
	if name != "" {
		to[types.NamespacedName{Namespace: namespace, Name: name}] = true
	}
}
