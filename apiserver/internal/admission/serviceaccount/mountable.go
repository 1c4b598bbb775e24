package serviceaccount

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// enforceMountable is the annotation of accounts whose pods may only use the
// secrets that the account lists.
const enforceMountable = "kubernetes.io/enforce-mountable-secrets"

// enforcesMountable reports whether the account has the annotation, in any of the words
// for true that upstream understands.
func enforcesMountable(account *core.ServiceAccount) bool {
	enforces, _ := strconv.ParseBool(account.Annotations[enforceMountable])
	return enforces
}

// mountableSecrets are the secrets that an account lists.
type mountableSecrets struct {
	account string
	listed  map[string]bool
}

func newMountableSecrets(account *core.ServiceAccount) *mountableSecrets {
	m := &mountableSecrets{account.Name, map[string]bool{}}
	for _, ref := range account.Secrets {
		m.listed[ref.Name] = true
	}
	return m
}

func (m *mountableSecrets) check(what, name, kind string) error {
	return fmt.Errorf("%s=%q is not allowed because service account %s does not reference that %s", what, name, m.account, kind)
}

// checkMountable refuses secrets that are not listed by an account with the annotation.
func checkMountable(account *core.ServiceAccount, pod *core.Pod) error {
	m := newMountableSecrets(account)
	for i := range pod.Spec.Volumes {
		if err := m.checkVolume(&pod.Spec.Volumes[i]); err != nil {
			return err
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if err := m.checkEnvironment("init container "+c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if err := m.checkEnvironment("container "+c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	pull := map[string]bool{}
	for _, ref := range account.ImagePullSecrets {
		pull[ref.Name] = true
	}
	for i, ref := range pod.Spec.ImagePullSecrets {
		if !pull[ref.Name] {
			return m.check(fmt.Sprintf("imagePullSecrets[%d].name", i), ref.Name, "imagePullSecret")
		}
	}
	return nil
}

// checkMountableEphemeral does so for ephemeral containers added to a pod.
func checkMountableEphemeral(account *core.ServiceAccount, pod *core.Pod) error {
	m := newMountableSecrets(account)
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		if err := m.checkEnvironment("ephemeral container "+c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	return nil
}

func (m *mountableSecrets) checkVolume(v *corev1.Volume) error {
	if v.Secret != nil && !m.listed[v.Secret.SecretName] {
		return m.check("volume with secret.secretName", v.Secret.SecretName, "secret")
	}
	if v.Projected == nil {
		return nil
	}
	for _, source := range v.Projected.Sources {
		if source.Secret != nil && !m.listed[source.Secret.Name] {
			return m.check("projected volume with secret.name", source.Secret.Name, "secret")
		}
	}
	return nil
}

func (m *mountableSecrets) checkEnvironment(container string, variables []corev1.EnvVar, sources []corev1.EnvFromSource) error {
	for _, v := range variables {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil && !m.listed[v.ValueFrom.SecretKeyRef.Name] {
			at := fmt.Sprintf("%s with envVar %s referencing secret.secretName", container, v.Name)
			return m.check(at, v.ValueFrom.SecretKeyRef.Name, "secret")
		}
	}
	for _, from := range sources {
		if from.SecretRef != nil && !m.listed[from.SecretRef.Name] {
			return m.check(container+" with envFrom referencing secret.secretName", from.SecretRef.Name, "secret")
		}
	}
	return nil
}
