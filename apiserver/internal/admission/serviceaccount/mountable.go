package serviceaccount

import (
	"fmt"

	"kctl/proto/core"
)

// onlyMountable refuses secrets that an account which says so does not list.
func onlyMountable(account *core.ServiceAccount, pod *core.Pod) error {
	mountable, pull := map[string]bool{}, map[string]bool{}
	for _, ref := range account.Secrets {
		mountable[ref.Name] = true
	}
	for _, ref := range account.ImagePullSecrets {
		pull[ref.Name] = true
	}
	refuse := func(what, name string) error {
		return fmt.Errorf("%s=%q is not allowed because service account %s does not reference that secret", what, name, account.Name)
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Secret != nil && !mountable[v.Secret.SecretName] {
			return refuse("volume with secret.secretName", v.Secret.SecretName)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.Secret != nil && !mountable[source.Secret.Name] {
				return refuse("projected volume with secret.name", source.Secret.Name)
			}
		}
	}
	for _, group := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range group {
			if name, ok := unlisted(&group[i], mountable); ok {
				return refuse(fmt.Sprintf("container %s with secret", group[i].Name), name)
			}
		}
	}
	for _, ref := range pod.Spec.ImagePullSecrets {
		if !pull[ref.Name] {
			return refuse("imagePullSecrets[].name", ref.Name)
		}
	}
	return nil
}

func unlisted(c *core.Container, mountable map[string]bool) (string, bool) {
	for _, env := range c.Env {
		if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil && !mountable[env.ValueFrom.SecretKeyRef.Name] {
			return env.ValueFrom.SecretKeyRef.Name, true
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil && !mountable[from.SecretRef.Name] {
			return from.SecretRef.Name, true
		}
	}
	return "", false
}
